package attendant

// Where the codes lead that telephones dial to hear messages.
const (
	OwnMailbox = "mailbox:own"
	AnyMailbox = "mailbox:any"
)
