package control

// OrgRequest and keyIn are what org create and key create ask for.
type OrgRequest struct{ Name, Country string }

type KeyRequest struct {
	Org, Scopes, Kind, Env, Name string
}

type BackupRequest struct{ To string }

// NumberBlockRequest is a block of numbers.
type NumberBlockRequest struct{ Org, Trunk, From, To string }

// PortRequest is the operator's word on numbers that are brought along.
type PortRequest struct{ Org, ID, Status, Trunk, Detail string }

// OutboundRequest is what the outbound command asks for.
type OutboundRequest struct {
	Do    string // stop, start or status
	Calls bool   // with stop: end the calls in progress too
}

// UserRequest is what users add and users password ask for.
type UserRequest struct{ Org, Email, First, Last, Role string }

// SessionRequest is what a command asks for.
type SessionRequest struct {
	Org string // "" where there is one only
	Env string // live or test
}

// Session is a way into the API.
type Session struct {
	URL, Key, KeyID string
	HookSecret      string // what soniq listen signs with: the same for an environment of an organisation as long as the master key is
}
