package limit

// Limits of expressions and templates of flows.
var (
	ExpressionMemory = &Limit{Name: "expression_memory", Default: 4 << 20, Unit: Bytes, Per: PerValue,
		Protects: "memory and processors from one evaluation of an expression or a template: all its values together"}
	FlowMemory = &Limit{Name: "flow_memory", Default: 64 << 20, Unit: Bytes, Per: PerCall,
		Protects: "the processors from the expressions of one call or simulated call: all their values together"}
	FlowExpressions = &Limit{Name: "flow_expressions", Default: 2000, Unit: Count, Per: PerValue, Code: "flow_invalid",
		Protects: "the compiler of expressions, which reads a whole flow"}
	ExpressionLength = &Limit{Name: "expression_length", Default: 1000, Unit: "characters", Per: PerValue, Code: "flow_invalid",
		Protects: "the compiler of expressions"}
	ExpressionTerms = &Limit{Name: "expression_terms", Default: 200, Unit: Count, Per: PerValue, Code: "flow_invalid",
		Protects: "the compiler of expressions"}
	TemplateLength = &Limit{Name: "template_length", Default: 5000, Unit: "characters", Per: PerValue, Code: "flow_invalid",
		Protects: "the compiler of expressions"}
	TemplateValues = &Limit{Name: "template_values", Default: 200, Unit: Count, Per: PerValue, Code: "flow_invalid",
		Protects: "the compiler of expressions"}
	TemplateResult = &Limit{Name: "template_result", Default: 10_000, Unit: Bytes, Per: PerValue,
		Protects: "the memory of the machine from a filled template, which is cut"}
)

// Limits of audio files.
var (
	AudioFile = &Limit{Name: "audio_file", Default: 20 << 20, Unit: Bytes, Per: PerValue, Code: "payload_too_large",
		Protects: "memory and disk from one uploaded file"}
	AudioLength = &Limit{Name: "audio_length", Default: 1800, Unit: Seconds, Per: PerValue, Code: "validation_failed",
		Protects: "the processors from the decoder of one file, and the memory of calls that play it"}
	AudioDecodersOfOrganisation = &Limit{Name: "audio_decoders", Default: 1, Unit: Count, Per: PerOrganisation, Code: "concurrency_limit",
		Protects: "the processors from many uploads of one organisation"}
	AudioDecoders = &Limit{Name: "audio_decoders_of_machine", Default: 2, Unit: Count, Per: PerMachine, Code: "overloaded",
		Protects: "the processors from uploads of all organisations"}
)

// Preferences limits what a console keeps for a user.
var Preferences = &Limit{Name: "preferences", Default: 32 << 10, Unit: Bytes, Per: PerUser, Code: "payload_too_large",
	Protects: "the database from consoles that store without end"}

// Limits of transfers.
var (
	UploadsOfOrganisation = &Limit{Name: "uploads", Default: 2, Unit: Count, Per: PerOrganisation, Code: "concurrency_limit",
		Protects: "the memory of the machine from the bodies of large requests"}
	Uploads = &Limit{Name: "uploads_of_machine", Default: 6, Unit: Count, Per: PerMachine, Code: "overloaded",
		Protects: "the memory of the machine from the bodies of large requests"}
	DownloadsOfOrganisation = &Limit{Name: "downloads", Default: 50, Unit: Count, Per: PerOrganisation, Code: "concurrency_limit",
		Protects: "descriptors and disk from the downloads of one organisation"}
	DownloadsOfAddress = &Limit{Name: "downloads_of_address", Default: 25, Unit: Count, Per: PerAddress, Code: "concurrency_limit",
		Protects: "descriptors and disk from one client, also one that has only signed addresses"}
	EventStreamsOfOrganisation = &Limit{Name: "event_streams", Default: 2000, Unit: Count, Per: PerOrganisation, Code: "concurrency_limit",
		Protects: "descriptors and the readers of the event log from one organisation"}
	EventStreamsOfCredential = &Limit{Name: "event_streams_of_credential", Default: 15, Unit: Count, Per: PerCredential,
		Code: "concurrency_limit", Protects: "the streams of the organisation's other programs and users"}
	EventStreamsOfSession = &Limit{Name: "event_streams_of_session", Default: 3, Unit: Count, Per: PerSession, Code: "concurrency_limit",
		Protects: "the other browsers of the user from one with many pages"}
)

// memory lists the limits of memory, processor time and transfers.
var memory = []*Limit{ExpressionMemory, FlowMemory, FlowExpressions, ExpressionLength, ExpressionTerms,
	TemplateLength, TemplateValues, TemplateResult,
	Preferences, AudioFile, AudioLength, AudioDecodersOfOrganisation, AudioDecoders, UploadsOfOrganisation, Uploads,
	DownloadsOfOrganisation, DownloadsOfAddress, EventStreamsOfOrganisation, EventStreamsOfCredential,
	EventStreamsOfSession}
