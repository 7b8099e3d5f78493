package op

// EncodeCursor returns the signed form of a position.
func EncodeCursor(c Cursors, p Position) string { return c.encode(p) }

// DecodeCursor parses the signed form of a position.
func DecodeCursor(c Cursors, text string) (Position, error) { return c.decode(text) }
