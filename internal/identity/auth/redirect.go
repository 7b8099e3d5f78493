package auth

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRedirectLength is the size limit of a redirect URI, in bytes.
const maxRedirectLength = 2000

// redirectFault returns why a redirect URI cannot be used; "" if it can: https, http on the loopback interface (RFC 8252 §7.3), or a
// private-use scheme of an app (§7.1).
func redirectFault(to string) string {
	u, err := url.Parse(to)
	switch {
	case err != nil || u.Scheme == "":
		return "is not an address"
	case len(to) > maxRedirectLength:
		return "is longer than 2000 bytes"
	case strings.Contains(to, "#"):
		return "must have no fragment"
	case u.User != nil:
		return "must have no user"
	case u.Scheme == "https" || u.Scheme == "http":
		if u.Host == "" || u.Opaque != "" {
			return "names no host"
		}
		if u.Scheme == "http" && !IsLoopback(to) {
			return "must be https, because it is not on the person's own machine"
		}
		return ""
	case slices.Contains(publicSchemes, u.Scheme):
		return "has the scheme " + u.Scheme + ", which does not lead to an app; use https, http on the person's own machine, or a scheme of the app"
	case u.Opaque != "" || u.Host == "" && u.Path == "":
		return "must have a path, such as " + u.Scheme + ":/callback"
	}
	return ""
}

// publicSchemes are schemes that no app has for itself. A browser runs or shows what the address contains, or passes it to a program of
// another kind. Other schemes are private-use ones.
var publicSchemes = []string{"javascript", "vbscript", "livescript", "mocha", "data", "file", "blob", "filesystem", "about", "view-source",
	"chrome", "chrome-extension", "moz-extension", "edge", "resource", "jar", "intent", "android-app", "ms-settings", "search-ms",
	"ms-msdt", "ftp", "ftps", "sftp", "ws", "wss", "ldap", "ldaps", "gopher", "telnet", "ssh", "smb", "nfs", "dav", "davs", "news",
	"nntp", "irc",
	"mailto", "tel", "sms", "smsto", "mms", "sip", "sips", "xmpp", "geo", "urn", "cid", "mid", "magnet", "wyciwyg", "x-javascript"}

// isPrivateScheme reports whether a redirect URI has a private-use scheme. Any program on the machine can claim the scheme.
func isPrivateScheme(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme != "https" && u.Scheme != "http"
}

// RedirectTarget returns what a page shows of a redirect URI: the host, or the scheme and the host of an app.
func RedirectTarget(to string) string {
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https" || u.Scheme == "http":
		return u.Host
	case u.Host == "":
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// quoted returns an address for an error, shortened and in one line.
func quoted(address string) string {
	address = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == '"' || r == '\\' { // RFC 6749 §5.2
			return '?'
		}
		return r
	}, address)
	const most = 200
	if r := []rune(address); len(r) > most {
		address = string(r[:most]) + "..."
	}
	return address
}
