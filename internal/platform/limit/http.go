package limit

// Limits of HTTP connections. Each holds a file descriptor, which calls and recordings need too.
var (
	HTTPConnections = &Limit{Name: "http_connections", Default: 20_000, Unit: Count, Per: PerMachine, Setting: "http-connections",
		Protects: "file descriptors; half of what the system allows, if that is less. Idle connections are closed first"}
	HTTPConnectionsOfAddress = &Limit{Name: "http_connections_of_address", Default: 500, Unit: Count, Per: PerAddress,
		Setting: "http-connections-per-address", Protects: "the connections of others; this machine and --trusted-proxies are not counted"}
	WebSockets = &Limit{Name: "websockets", Default: 10_000, Unit: Count, Per: PerMachine, Code: "overloaded", Setting: "websockets",
		Protects: "file descriptors from phones in browsers; a quarter of what the system allows, if that is less"}
	Descriptors = &Limit{Name: "descriptors_for_http", Default: 75, Unit: "percent", Per: PerMachine,
		Protects: "file descriptors for calls and recordings: beyond this share in use, new HTTP connections are refused"}
)

// http lists the limits of HTTP connections.
var http = []*Limit{HTTPConnections, HTTPConnectionsOfAddress, WebSockets, Descriptors}
