package op

// EncodeForTest and DecodeForTest give tests the signed form of a position.
func EncodeForTest(c Cursors, p Position) string { return c.encode(p) }

// DecodeForTest reads it.
func DecodeForTest(c Cursors, text string) (Position, error) { return c.decode(text) }
