package cli

import (
	"net/url"
)

// links checks whether links in answers and mails can be followed.
func (d *doctor) links() {
	if base, guessed := d.config.LinkBase(d.config.HTTP); guessed {
		d.title("links")
		d.hint("--http listens at all addresses and --base-url is not set: links, mails and OAuth begin with "+base,
			"set --base-url to the address that others use, such as https://voice.example.com")
	}
}

// phones checks whether phones can fetch their configuration.
func (d *doctor) phones() {
	c := d.config
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.BaseURL == "" && c.HTTPS == "" || err != nil:
		return // other machines cannot reach this one by HTTP
	case u.Scheme == "https" || c.HTTPS != "":
		d.title("phones that fetch their configuration")
		d.ok("they fetch it by https")
	case c.ProvisionPlain == "":
		d.title("phones that fetch their configuration")
		d.hint("--base-url is not https: phones elsewhere are refused their configuration, which has their password in it",
			"put a TLS proxy in front (--trusted-proxies) or set --https, and make --base-url https; or name their networks with --provision-plain")
	}
}
