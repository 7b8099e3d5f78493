package mcp

import (
	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

func contactTools() []*tool {
	fields := bodyArgs("first_name", "last_name", "company", "phones", "emails", "title", "tags", "crm_sync")
	return []*tool{
		{name: "lookup_contact", title: "Find a contact", scope: access.ContactsRead, hints: lookupHints, operation: "contacts.lookup",
			about: "Finds who a telephone number or an e-mail address belongs to, in the phone book and in all connected CRM systems at once. Give phone or email, not both.",
			args:  queryArgs("phone", "email"), run: lookupContact,
			summarize: func(schema) string { return "A contact was found." }},
		{name: "get_screen_pop", title: "Everything on a caller", scope: access.ContactsRead, hints: lookupHints,
			operation: "contacts.screen_pop",
			about:     "Shows what an agent should know of a caller at a glance: who it is, earlier calls, what is open. Give a phone number, or the call_id of a call.",
			args:      queryArgs("phone", "call_id"), summarize: func(schema) string { return "What is known of the caller." }},
		{name: "create_contact", title: "Add a contact", scope: access.ContactsWrite, hints: hints{openWorld: true},
			operation: "contacts.create",
			about:     "Adds a contact, and writes it to the connected CRM systems unless crm_sync is false. Give a first name or a company, and at least one number or address where you can.",
			args:      joinArgs(fields, bodyArgs("connection_ids")), shape: shape{wrapIn: "contact"},
			summarize: func(schema) string { return "The contact was added." }},
		{name: "update_contact", title: "Change a contact", scope: access.ContactsWrite, hints: hints{destructive: true, idempotent: true,
			openWorld: true}, operation: "contacts.update",
			about: "Changes the given fields of a contact and leaves the others; null clears one. Lists such as phones are replaced as a whole. Written to the connected CRM systems unless crm_sync is false.",
			args:  joinArgs(pathArg("contact_id", "id", "The contact"), fields, bodyArgs("vip", "do_not_call")),
			shape: shape{wrapIn: "contact"}, summarize: func(schema) string { return "The contact was changed." }},
	}
}

// lookupContact requires exactly one of the two arguments. It sends a progress notification, because connected
// systems can be slow.
func lookupContact(c *toolCall) (schema, *toolError) {
	if (c.args["phone"] == nil) == (c.args["email"] == nil) {
		return nil, newToolError(op.Invalid(op.Field("phone", "required", "give phone or email, one of the two")))
	}
	c.progress("Asking the connected systems")
	return c.runOperation()
}
