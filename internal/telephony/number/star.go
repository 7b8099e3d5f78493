package number

// Feature codes: codes that phones of an organisation can dial. They take precedence over extensions and the public
// network.
const (
	OwnMailbox = "*97" // voicemail of the phone's user
	AnyMailbox = "*98" // any mailbox, by extension and PIN
)

// FeatureCodes lists all codes with their purpose.
var Stars = []struct{ Code, For string }{
	{OwnMailbox, "hear the messages of your own mailbox"},
	{AnyMailbox, "hear the messages of any mailbox, by its extension and PIN"},
}
