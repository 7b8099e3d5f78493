package mcp

import (
	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

func contactTools() []*tool {
	fields := body("first_name", "last_name", "company", "phones", "emails", "title", "tags", "crm_sync")
	return []*tool{
		{name: "lookup_contact", title: "Find a contact", scope: access.ContactsRead, hints: fanOut, operation: "contacts.lookup",
			about: "Finds who a telephone number or an e-mail address belongs to, in the phone book and in all connected CRM systems at once. Give phone or email, not both.",
			args:  query("phone", "email"), run: lookUp, says: func(out schema) string { return "Found " + text(out["name"]) + "." }},
		{name: "get_screen_pop", title: "Everything on a caller", scope: access.ContactsRead, hints: fanOut, operation: "contacts.screen_pop",
			about: "Shows what an agent should know of a caller at a glance: who it is, earlier calls, what is open. Give a phone number, or the call_id of a call.",
			args:  query("phone", "call_id"), says: func(schema) string { return "What is known of the caller." }},
		{name: "create_contact", title: "Add a contact", scope: access.ContactsWrite, hints: hints{open: true}, operation: "contacts.create",
			about: "Adds a contact, and writes it to the connected CRM systems unless crm_sync is false. Give a first name or a company, and at least one number or address where you can.",
			args:  join(fields, body("connection_ids")), shape: shape{whole: "contact"}, says: func(schema) string { return "The contact was added." }},
		{name: "update_contact", title: "Change a contact", scope: access.ContactsWrite, hints: hints{destroys: true, again: true, open: true}, operation: "contacts.update",
			about: "Changes the given fields of a contact and leaves the others; null clears one. Lists such as phones are replaced as a whole. Written to the connected CRM systems unless crm_sync is false.",
			args:  join(path("contact_id", "id", "The contact"), fields, body("vip", "do_not_call")), shape: shape{whole: "contact"},
			says: func(schema) string { return "The contact was changed." }},
	}
}

// lookupContact requires exactly one of the two arguments. It sends a progress notification, because connected
// systems can be slow.
func lookUp(c *call) (schema, *fault) {
	if (c.args["phone"] == nil) == (c.args["email"] == nil) {
		return nil, failed(op.Invalid(op.Field("phone", "required", "give phone or email, one of the two")))
	}
	c.progress("Asking the connected systems")
	return c.pass()
}
