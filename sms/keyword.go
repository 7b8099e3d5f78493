package sms

import "strings"

// What a keyword asks for.
const (
	stop  = "STOP"
	start = "START"
	help  = "HELP"
)

// keywords are those carriers and regulators know, beside French and Spanish ones.
var keywords = map[string]string{
	"STOP": stop, "STOPALL": stop, "STOP ALL": stop, "UNSUBSCRIBE": stop, "END": stop, "QUIT": stop, "CANCEL": stop, "REVOKE": stop,
	"OPTOUT": stop, "OPT-OUT": stop, "OPT OUT": stop, "ARRET": stop, "ARRÊT": stop, "ALTO": stop,
	"START": start, "UNSTOP": start, "OPTIN": start, "OPT-IN": start, "OPT IN": start,
	"HELP": help, "INFO": help, "AIDE": help, "AYUDA": help,
}

// replies are what is answered to keywords.
var replies = map[string]string{
	stop:  "You have been unsubscribed and will receive no more messages from this number. Reply START to subscribe again.",
	start: "You will receive messages from this number again. Reply STOP to unsubscribe.",
	help:  "Reply STOP to receive no more messages from this number, START to receive them again.",
}

// keyword is what a message asks for, "" where it is no keyword: the whole message counts, in any case, with a full stop or
// an exclamation mark or without.
func keyword(body string) string {
	return keywords[strings.ToUpper(strings.TrimRight(strings.TrimSpace(body), ".! "))]
}
