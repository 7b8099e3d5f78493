package control

// OrgRequest creates an organisation (org create).
type OrgRequest struct{ Name, Country string }

// KeyRequest creates an API key (key create).
type KeyRequest struct {
	Org, Scopes, Kind, Env, Name string
}

// BackupRequest copies database, keys and recordings to a new folder (backup).
type BackupRequest struct{ To string }

// NumberBlockRequest adds a block of free numbers to the stock of an organisation (stock add).
type NumberBlockRequest struct{ Org, Trunk, From, To string }

// NetworkRequest confirms that calls of an organisation come from a network (network).
type NetworkRequest struct{ Org, Network string }

// NumberRequest confirms that a number belongs to an organisation (number).
type NumberRequest struct{ Org, Number string }

// PortRequest sets the status of a port of numbers from another carrier (port set).
type PortRequest struct{ Org, ID, Status, Trunk, Detail string }

// OutboundRequest stops or starts outbound calls of all organisations, or asks for the state (outbound).
type OutboundRequest struct {
	Do    string // stop, start or status
	Calls bool   // with stop: end the calls in progress too
}

// UserRequest creates a user or a link to set a password (users add, users password).
type UserRequest struct{ Org, Email, First, Last, Role string }

// SessionRequest asks for an API key that lasts as long as the command runs.
type SessionRequest struct {
	Org string // empty if the installation has only one
	Env string // live or test
}

// Session has the address and the key for the API.
type Session struct {
	URL, Key, KeyID string
	HookSecret      string // secret with which soniq listen signs; constant for an organisation and environment
}
