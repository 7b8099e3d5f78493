package number

// Feature codes: codes that phones of an organisation can dial. They take precedence over extensions and the public
// network.
const (
	OwnMailboxCode = "*97" // voicemail of the phone's user
	AnyMailboxCode = "*98" // any mailbox, by extension and PIN
)

// FeatureCodes lists all codes with their purpose.
var FeatureCodes = []struct{ Code, For string }{
	{OwnMailboxCode, "hear the messages of your own mailbox"},
	{AnyMailboxCode, "hear the messages of any mailbox, by its extension and PIN"},
}
