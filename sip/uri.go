package sip

// URI is a SIP, SIPS or tel URI taken apart. For other schemes User holds
// everything after the scheme. User is unescaped; Params keeps its escapes and
// has no leading semicolon.
type URI struct {
	Scheme string // lower case; "sip" when empty
	User   string
	Host   string // IPv6 without brackets
	Port   int    // 0 when not given
	Params string
}

// Address is a name-addr: a display name and a URI.
type Address struct {
	Display string
	URI     URI
}
