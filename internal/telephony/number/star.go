package number

// The codes that telephones of an organisation dial. They lead before extensions and the public network.
const (
	OwnMailbox = "*97" // the mailbox of the telephone's user
	AnyMailbox = "*98" // any mailbox, by its extension and PIN
)

// Stars are all codes, and what each is for.
var Stars = []struct{ Code, For string }{
	{OwnMailbox, "hear the messages of your own mailbox"},
	{AnyMailbox, "hear the messages of any mailbox, by its extension and PIN"},
}
