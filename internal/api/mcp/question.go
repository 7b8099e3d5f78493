package mcp

import (
	"fmt"
	"strings"

	"soniq/internal/platform/access"
)

// question asks a person to confirm an action. Its text names every effect of the action, because text that the assistant
// read may have determined the arguments (prompt injection).
type question struct {
	text      string // "": no confirmation
	otherwise need   // of a client that cannot ask
}

// need is what an action requires of a client that cannot ask.
type need int

const (
	needsNothing need = iota
	needsConfirm      // the argument confirm
	needsPerson       // such a client cannot do it
)

// maxShown limits the characters of an argument in a question.
const maxShown = 80

// shown returns an argument or a name for a question: one line without invisible characters, in quotation marks unless it is one plain
// word.
func shown(v any) string {
	line := strings.Join(strings.Fields(stripInvisible(text(v))), " ")
	if r := []rune(line); len(r) > maxShown {
		line = string(r[:maxShown]) + "…"
	}
	if strings.ContainsFunc(line, func(r rune) bool { return !isPlain(r) }) {
		return "“" + strings.NewReplacer("“", "'", "”", "'", `"`, "'").Replace(line) + "”"
	}
	return line
}

func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-_.:@", r)
}

// part returns a part of a question with the value of an argument; "" if the argument is missing.
func (c *toolCall) part(words, name string) string {
	if v := text(c.args[name]); v != "" {
		return words + shown(v)
	}
	return ""
}

func callQuestion(c *toolCall) question {
	ask := "Call" + c.part(" ", "to") + c.part(" from the phones of ", "user_id") + c.part(", showing the number ", "from") +
		c.part(", and lead who answers through the call flow ", "flow_id")
	switch text(c.args["record"]) {
	case "on":
		ask += ", and record the call"
	case "off":
		ask += ", without a recording"
	}
	return question{ask + "?", needsNothing}
}

func monitorQuestion(c *toolCall) question {
	return question{"Listen silently to call" + c.part(" ", "call_id") + c.part(" with the phones of ", "user_id") +
		c.part(" with the device ", "device_id") + "?", needsNothing}
}

func orderQuestion(c *toolCall) question {
	return question{"Order the number" + c.part(" ", "number") + c.part(" and lead its calls to the call flow ", "flow_id") +
		"? This may cost money.", needsConfirm}
}

func removalQuestion(c *toolCall) question {
	ask := "Remove user " + c.userLabel(text(c.args["user_id"])) + "?"
	if heir := text(c.args["reassign_to"]); heir != "" {
		ask += " Their numbers are given to " + c.userLabel(heir) + "."
	}
	return question{ask + " This cannot be undone.", needsConfirm}
}

// newUserQuestion asks about every new user, who gets an invitation at the given address. A person confirms roles above agent.
func newUserQuestion(c *toolCall) question {
	role := text(c.args["role"])
	if role == "" {
		role = "agent"
	}
	q := question{"Invite" + c.part(" ", "email") + " as a new user with the role " + shown(role) + "?", needsNothing}
	if access.Above(role, "agent") {
		q.otherwise = needsPerson
	}
	return q
}

// roleQuestion asks about a role above agent that is given or taken.
func roleQuestion(c *toolCall) question {
	role := text(c.args["role"])
	if role == "" {
		return question{}
	}
	u, _ := c.callOperation("users.get", operationRequest{path: map[string]string{"id": text(c.args["user_id"])}})
	who := personLabel(u, text(c.args["user_id"]))
	switch was := text(u["role"]); {
	case was != role && access.Above(was, "agent"):
		return question{"Change the role of " + who + " from " + was + " to " + shown(role) + "?", needsPerson}
	case access.Above(role, "agent"):
		return question{"Give " + who + " the role " + shown(role) + "?", needsPerson}
	}
	return question{}
}

// userLabel returns the name and e-mail address of a user, or the id if the user is unknown.
func (c *toolCall) userLabel(id string) string {
	u, _ := c.callOperation("users.get", operationRequest{path: map[string]string{"id": id}})
	return personLabel(u, id)
}

func personLabel(u schema, id string) string {
	if u["id"] == nil {
		return shown(id)
	}
	return shown(u["name"]) + " (" + shown(u["email"]) + ")"
}

// maxListedNumbers limits the numbers that a question lists.
const maxListedNumbers = 5

// flowQuestion asks before numbers lead to a new flow: from then on their callers reach whatever the flow calls.
func flowQuestion(c *toolCall) question {
	ids, _ := c.args["number_ids"].([]any)
	if len(ids) == 0 {
		return question{}
	}
	var labels []string
	for _, id := range ids[:min(len(ids), maxListedNumbers)] {
		labels = append(labels, c.numberLabel(text(id)))
	}
	if more := len(ids) - len(labels); more > 0 {
		labels = append(labels, fmt.Sprintf("and %d more", more))
	}
	return question{"Lead the calls of " + strings.Join(labels, ", ") + " to the new call flow" + c.part(" ", "name") + "?", needsPerson}
}

// numberLabel returns a number and where its calls go now, or the id if the number is unknown.
func (c *toolCall) numberLabel(id string) string {
	n, _ := c.callOperation("numbers.get", operationRequest{path: map[string]string{"id": id}}, access.NumbersAdmin)
	if n["number"] == nil {
		return shown(id)
	}
	to, _ := n["assigned_to"].(schema)
	if text(to["id"]) == "" {
		return text(n["number"])
	}
	return text(n["number"]) + " (now " + text(to["type"]) + " " + shown(to["name"]) + ")"
}
