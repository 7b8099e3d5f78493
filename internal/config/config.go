// Package config has every setting of an installation: where its value comes from, and whether it is valid.
package config

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"
)

// Config has every setting. A value comes from a flag, else from the environment, else from the file named by
// --config, else from the default. The variable is SONIQ_ and the flag's name in capitals. The help texts are the
// configuration manual. The tag old is an earlier name, which is still accepted as flag, variable and line of the file.
type Config struct {
	Data            string        `flag:"data" default:"./soniq-data" help:"folder for the database, recordings and keys"`
	HTTP            string        `flag:"http" default:"127.0.0.1:8080" help:"address for REST and the documentation; port 0 picks a free one"`
	HTTPS           string        `flag:"https" default:"" help:"address for the same over TLS, which browsers want before they give a page the microphone; empty: none"`
	SIP             string        `flag:"sip" default:"0.0.0.0:5060" help:"addresses for SIP over UDP and TCP, with commas, such as 0.0.0.0:5060,[::]:5060; port 0 picks a free one"`
	SIPTLS          string        `flag:"sip-tls" default:"" help:"address for SIP over TLS, such as 0.0.0.0:5061; empty: TLS is not listened for"`
	SMPP            string        `flag:"smpp" default:"" help:"address at which programs send and receive text messages by SMPP 3.4, such as 0.0.0.0:2775; empty: none"`
	SMPPS           string        `flag:"smpps" default:"" help:"address for the same over TLS, such as 0.0.0.0:3550; empty: none"`
	TLSCert         string        `flag:"tls-cert" default:"" help:"certificate for SIP over TLS, HTTPS and SMPP over TLS (PEM); empty: one of our own is made in the data folder"`
	TLSKey          string        `flag:"tls-key" default:"" help:"key of the certificate (PEM)"`
	ProvisionHost   string        `flag:"provision-host" default:"" help:"host or address at which phones that are given their configuration register; empty: --public-ip, else the host of --base-url"`
	ProvisionPlain  string        `flag:"provision-plain" default:"" help:"networks (CIDR, comma-separated) whose phones may fetch their configuration, which has their password in it, without TLS"`
	ProvisionEvery  time.Duration `flag:"provision-interval" default:"24h" help:"how often phones fetch their configuration again"`
	NTPServer       string        `flag:"ntp-server" default:"pool.ntp.org" help:"time server that phones are told"`
	SIPEdges        string        `flag:"sip-edges" default:"" help:"networks (CIDR, comma-separated) of SIP proxies in front of this server: the sender of what they forward is what the proxy wrote into the second Via (received, rport), and a ban never hits the proxy"`
	TrustedProxies  string        `flag:"trusted-proxies" default:"" help:"networks (CIDR, comma-separated) of proxies before HTTP whose X-Forwarded-For is believed, for the addresses that API keys may be used from and for phones in browsers"`
	SessionExpires  time.Duration `flag:"session-expires" default:"30m" help:"how long a call lives without a sign of life of either side (RFC 4028)"`
	WebOrigins      string        `flag:"web-origins" default:"" help:"pages (https://host, comma-separated) whose browsers may connect phones, beside those of this server"`
	RTPPorts        string        `flag:"rtp-ports" default:"20000-29999" help:"UDP ports for audio, first-last; 0-0 lets the system choose"`
	DB              string        `flag:"db" default:"" help:"database: empty for SQLite in the data folder, or postgres://user:password@host/name"`
	Restored        string        `flag:"restored" default:"" help:"what a restored backup is: live (it takes the place of the original, which runs no more; give this once) or copy (it sends nothing, also if it is not recognised as a copy); empty: a recognised copy sends nothing"`
	PublicIP        string        `flag:"public-ip" default:"" help:"address told to phones and carriers when this machine is behind NAT"`
	BaseURL         string        `flag:"base-url" default:"" help:"address under which this server is reached from outside, without a path; empty for http://<http address>"`
	AllowTargets    string        `flag:"allow-targets" default:"" help:"networks (CIDR, comma-separated) that webhooks, AI engines, connected systems, trunks and media may reach although they are not public, also by http"`
	Transcriber     string        `flag:"transcriber" default:"builtin" help:"speech to text: builtin (the model of soniq speech-model install, else pocketsphinx), pocketsphinx, off, sherpa:FOLDER with a model of sherpa-onnx, or the address of an OpenAI-compatible server"`
	Sherpa          string        `flag:"sherpa" default:"" help:"folder of libsherpa-onnx-c-api.so; empty: beside the model, or where the system looks for libraries"`
	TransKey        string        `flag:"transcriber-key" default:"" secret:"true" help:"key for the transcriber"`
	TransModel      string        `flag:"transcriber-model" default:"" help:"model of the transcriber"`
	Summarizer      string        `flag:"summarizer" old:"writer" default:"builtin" help:"call notes: builtin, off, or the address of an OpenAI-compatible server"`
	SummarizerKey   string        `flag:"summarizer-key" old:"writer-key" default:"" secret:"true" help:"key for the summarizer"`
	SummarizerModel string        `flag:"summarizer-model" old:"writer-model" default:"" help:"model of the summarizer"`
	Embedder        string        `flag:"embedder" default:"builtin" help:"memory: builtin, off, or the address of an OpenAI-compatible server"`
	EmbedKey        string        `flag:"embedder-key" default:"" secret:"true" help:"key for the embedder"`
	EmbedModel      string        `flag:"embedder-model" default:"" help:"model of the embedder"`
	MemoryIndex     string        `flag:"memory-index" default:"auto" help:"where large memories are searched: auto (in PostgreSQL where it has the extension vector), process, or database (the extension is created if it is missing)"`
	Voice           string        `flag:"voice" default:"builtin" help:"text to speech: builtin, off, or the address of an OpenAI-compatible server"`
	VoiceKey        string        `flag:"voice-key" default:"" secret:"true" help:"key for the voice"`
	VoiceModel      string        `flag:"voice-model" default:"" help:"model of the voice"`
	VoiceAgent      string        `flag:"voice-agent" old:"assistant" default:"builtin" help:"voice agents of flows: builtin (prepared answers), off, or the address of an OpenAI-compatible server (wss://…/realtime: of its Realtime protocol)"`
	VoiceAgentKey   string        `flag:"voice-agent-key" old:"assistant-key" default:"" secret:"true" help:"key for the voice agents' server"`
	VoiceAgentModel string        `flag:"voice-agent-model" old:"assistant-model" default:"" help:"model of the voice agents"`
	MaxAgents       int           `flag:"max-agents" default:"100" help:"callers who talk to voice agents at once; who comes beyond them is handed over; 0: no limit"`
	Brand           string        `flag:"brand" default:"soniq" help:"prefix of API keys"`
	HookPrefix      string        `flag:"webhook-prefix" default:"x-service" help:"prefix of webhook headers"`
	SIPDomain       string        `flag:"sip-domain" default:"soniq" help:"realm of phones' passwords; changing it invalidates them all"`
	Country         string        `flag:"country" default:"US" help:"country of the organisation made at the first start (ISO 3166)"`
	MetricsKey      string        `flag:"metrics-key" default:"" secret:"true" help:"bearer token that every reader of /metrics must show; empty: only requests from this machine that no proxy forwarded may read them"`
	CORSOrigins     string        `flag:"cors-origins" default:"" help:"pages (https://host, comma-separated) whose browsers may use the API; * for all"`
	RateReads       int           `flag:"rate-reads" default:"600" help:"reads per minute and credential; 0: no limit"`
	RateWrites      int           `flag:"rate-writes" default:"120" help:"writes per minute and credential; 0: no limit"`
	RateBurst       int           `flag:"rate-burst" default:"60" help:"requests per second and credential; 0: no limit"`
	RateSearches    int           `flag:"rate-searches" default:"20" help:"memory searches per second and credential; 0: no limit"`
	RateAttempts    int           `flag:"rate-attempts" default:"120" help:"requests without a valid credential per minute and address; 0: no limit"`
	OAuthRegister   string        `flag:"oauth-register" default:"on" help:"on: assistants may register themselves as OAuth clients (RFC 7591); off: only known ones and those that are described at an address of theirs"`
	OAuthCallbacks  string        `flag:"oauth-callbacks" default:"" help:"addresses (https, comma-separated) of remote assistants to which the client soniq-assistant may lead people back, beside their own machines"`
	OAuthReuse      time.Duration `flag:"oauth-reuse-window" default:"0s" help:"how long, up to 60s, a refresh token may be used once more by a program that lost the answer"`
	AuditDays       int           `flag:"audit-days" default:"400" help:"days for which the audit log is kept"`
	HTTPConns       int           `flag:"http-connections" default:"20000" help:"HTTP connections at once; fewer if the system allows few open files"`
	HTTPPerAddress  int           `flag:"http-connections-per-address" default:"500" help:"HTTP connections at once from a source address; this machine and --trusted-proxies are not counted"`
	WebSockets      int           `flag:"websockets" default:"10000" help:"WebSocket connections at once, of phones in browsers; fewer if the system allows few open files"`
	MaxCalls        int           `flag:"max-calls" default:"20000" help:"calls in progress beyond which new ones get 503"`
	DeviceCalls     int           `flag:"device-calls" default:"30" help:"calls in progress of one device beyond which its new ones get 486; 0: no limit"`
	UserCalls       int           `flag:"user-calls" default:"60" help:"calls in progress placed by one user's devices and programs beyond which new ones get 486; 0: no limit"`
	OrgCalls        int           `flag:"org-calls" default:"10000" help:"calls in progress of one organisation, internal ones too, beyond which new ones get 486; 0: no limit"`
	OrgShare        int           `flag:"org-share" default:"50" help:"percent of the RTP ports that one of several organisations can use by itself; 100: all"`
	CallRate        int           `flag:"call-rate" default:"4000" help:"new calls per second beyond which they get 503"`
	RingTime        time.Duration `flag:"ring-time" default:"60s" help:"how long phones and carriers are rung before a call counts as not answered"`
	TrunkProbe      time.Duration `flag:"trunk-probe" default:"1m" help:"how often each trunk is asked by OPTIONS whether it is there; 0 never asks"`
	STIRRoots       string        `flag:"stir-roots" default:"" help:"file (PEM) with the authorities whose certificates may sign who calls (STIR/SHAKEN), such as the list of your country's policy administrator; empty: calls from trunks are not verified"`
	KeepAlive       time.Duration `flag:"nat-keepalive" default:"25s" help:"how often phones behind routers that registered by UDP are asked something, so that their router lets calls in; 0 never asks"`
	MediaTimeout    time.Duration `flag:"media-timeout" default:"1m" help:"how long a phone or carrier that should speak may send no audio before it is asked whether it is still there; 0 never asks"`
	BrowserTimeout  time.Duration `flag:"browser-timeout" default:"20s" help:"how long a browser whose page is gone keeps its registration without a connection, and its call without audio; 0: as long as other phones"`
	BrowserAway     time.Duration `flag:"browser-away" default:"60s" help:"how long the browser of a person without another phone may be unreachable before the person is away"`
	Plans           string        `flag:"plans" default:"" help:"file (JSON) with the plans that partners sell and what single organisations are allowed; empty: starter, business and enterprise"`
	CloseGrace      time.Duration `flag:"close-grace" default:"720h" help:"how long a child organisation that its partner closed can be resumed; after that it is erased"`
	SMTP            string        `flag:"smtp" default:"" help:"mail server: smtps://user@host, or smtp://user@host:587, which must offer STARTTLS unless --allow-targets lists it; empty: no mail is sent"`
	SMTPPassword    string        `flag:"smtp-password" default:"" secret:"true" help:"password for the mail server"`
	MailFrom        string        `flag:"mail-from" default:"" help:"sender of mails, such as Voice <voice@example.com>"`
	ICEServers      string        `flag:"ice-servers" default:"" help:"STUN and TURN servers told to phones in browsers (comma-separated), such as stun:stun.example.com:3478,turn:turn.example.com:3478"`
	TURNSecret      string        `flag:"turn-secret" default:"" secret:"true" help:"secret shared with the TURN servers, of which passwords for a day are made (use-auth-secret of coturn)"`
	HubSpotApp      string        `flag:"hubspot-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their HubSpot; empty: each brings one of its own"`
	SalesforceApp   string        `flag:"salesforce-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their Salesforce; empty: each brings one of its own"`
	PipedriveApp    string        `flag:"pipedrive-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their Pipedrive; empty: each brings one of its own"`
	ZohoApp         string        `flag:"zoho-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their Zoho CRM; empty: each brings one of its own"`
	DynamicsApp     string        `flag:"dynamics-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their Dynamics 365; empty: each brings one of its own"`
	ZendeskApp      string        `flag:"zendesk-app" default:"" secret:"true" help:"app (client-id:client-secret) by which organisations let us use their Zendesk; empty: each brings one of its own"`
	DrainTime       time.Duration `flag:"drain" default:"30s" help:"how long a shutdown waits for calls in progress"`
	LogLevel        string        `flag:"log-level" default:"info" help:"debug, info, warn or error"`
	LogFormat       string        `flag:"log-format" default:"text" help:"text or json"`
	File            string        `flag:"config" default:"" help:"file with a line 'name = value' for each setting"`
}

// DatabaseURL returns the PostgreSQL URL, or the path of the SQLite file in the data folder.
func (c *Config) DatabaseURL() string { return cmp.Or(c.DB, filepath.Join(c.Data, "soniq.db")) }

// IsPostgres reports whether the database is PostgreSQL.
func (c *Config) IsPostgres() bool {
	return strings.HasPrefix(c.DB, "postgres://") || strings.HasPrefix(c.DB, "postgresql://")
}

// SplitList returns the entries of a list separated by commas or spaces.
func SplitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
