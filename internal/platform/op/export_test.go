package op

// EncodeCursor returns the signed form of a position.
func EncodeForTest(c Cursors, p Position) string { return c.encode(p) }

// DecodeCursor parses the signed form of a position.
func DecodeForTest(c Cursors, text string) (Position, error) { return c.decode(text) }
