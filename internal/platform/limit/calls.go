package limit

// Limits of calls in progress. Emergency calls pass all of them.
var (
	CallsOfDevice = &Limit{Name: "calls_of_device", Default: 30, Unit: Count, Per: PerDevice, Code: "concurrency_limit", Setting: "--device-calls",
		Protects: "the others from one stolen telephone password"}
	CallsOfUser = &Limit{Name: "calls_of_user", Default: 60, Unit: Count, Per: PerUser, Code: "concurrency_limit", Setting: "--user-calls",
		Protects: "the organisation from one user's phones and programs"}
	CallsOfOrganisation = &Limit{Name: "calls_of_organisation", Default: 10_000, Unit: Count, Per: PerOrganisation, Code: "concurrency_limit",
		Setting: "--org-calls", Protects: "the other organisations: half of the calls of the machine"}
	StreamShare = &Limit{Name: "stream_share", Default: 50, Unit: "percent", Per: PerOrganisation, Code: "concurrency_limit",
		Setting: "--org-share", Protects: "the other organisations' RTP ports: an organisation may use at most as many as are free"}
	Streams = &Limit{Name: "streams", Default: 1, Unit: "pair of RTP ports", Per: PerMachine, Code: "carrier_error", Setting: "--rtp-ports",
		Protects: "calls in progress and emergency calls, for which the last ports and descriptors are kept back"}
)

// calls lists the limits of calls in progress.
var calls = []*Limit{CallsOfDevice, CallsOfUser, CallsOfOrganisation, StreamShare, Streams}
