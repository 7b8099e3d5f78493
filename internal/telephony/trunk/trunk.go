// Package trunk manages trunks to the public network: their configuration, health and source addresses, the routing
// and admission of outbound calls, and emergency calls. It also buys numbers from Telnyx.
package trunk

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Trunk is a SIP trunk to a carrier or to another exchange.
type Trunk struct {
	ID               string        `json:"id" example:"trk_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name             string        `json:"name"`
	Kind             string        `json:"kind" enum:"register,ip,peer"`
	Host             string        `json:"host" example:"sip.carrier.example"`
	Port             int           `json:"port"`
	Transport        string        `json:"transport" enum:"udp,tcp,tls"`
	Direction        string        `json:"direction" enum:"inbound,outbound,both" doc:"Which calls it takes part in"`
	Username         *string       `json:"username"`
	FromDomain       *string       `json:"from_domain"`
	AllowedIPs       []string      `json:"allowed_ips" nullable:"false" doc:"Where the carrier's calls come from, beside host when that is an address"`
	Codecs           []string      `json:"codecs" nullable:"false"`
	SRTP             string        `json:"srtp" enum:"off,preferred,required"`
	MaxChannels      int           `json:"max_channels" doc:"0: no limit"`
	CallsPerSecond   int           `json:"calls_per_second" doc:"0: no limit"`
	Priority         int           `json:"priority" doc:"The lowest is tried first"`
	PrefixRules      []PrefixRule  `json:"prefix_rules" nullable:"false" doc:"Without rules the trunk takes every number, in E.164; with rules only those that one matches, the longest first"`
	ForeignNumbers   bool          `json:"foreign_numbers" doc:"The carrier accepts calls that show numbers of other trunks"`
	AllowRefer       bool          `json:"allow_refer" doc:"Of kind peer: the other exchange may transfer calls (REFER), also to outside numbers at your expense"`
	CallerIDMode     string        `json:"caller_id_mode" enum:"pai,rpid,from"`
	Enabled          bool          `json:"enabled"`
	EmergencyCapable bool          `json:"emergency_capable" doc:"Emergency calls may take this trunk: the carrier routes them with the caller's location"`
	Inbound          Inbound       `json:"inbound"`
	Status           string        `json:"status" enum:"up,degraded,down,disabled,unknown" doc:"unknown until the first OPTIONS request has a result"`
	Registration     *Registration `json:"registration" doc:"null where the trunk does not register"`
	LastError        *string       `json:"last_error" doc:"Why it is not up"`
	ProbeMS          *int          `json:"probe_ms" doc:"How long its last answer to OPTIONS took"`
	ActiveCalls      int           `json:"active_calls"`
	ASR              *int          `json:"answer_seizure_rate" doc:"Percent of the last hour's calls to it that were answered; null where there were none"`
	CreatedAt        db.Time       `json:"created_at"`

	OrgID     string  `json:"-"`
	UpdatedAt db.Time `json:"-"`

	password, inboundPassword []byte // sealed
}

// PrefixRule rewrites numbers for the carrier: if a number begins with match, strip characters are removed and
// prepend is put in front.
type PrefixRule struct {
	Match   string `json:"match" maxLength:"20" example:"+49"`
	Strip   int    `json:"strip" minimum:"0" maximum:"20"`
	Prepend string `json:"prepend" maxLength:"20" example:"0"`
}

// Inbound describes how the carrier's calls to us are recognised.
type Inbound struct {
	AllowedIPs []string `json:"allowed_ips" nullable:"false"`
	Username   *string  `json:"username" doc:"Digest user name of the carrier, where it logs in with us"`
}

// Registration is the state of our registration with the carrier (RFC 3261 §10).
type Registration struct {
	Status    string  `json:"status" enum:"registered,unregistered,failed"`
	ExpiresAt db.Time `json:"expires_at" nullable:"true"`
	LastError *string `json:"last_error"`
}

// Sealer encrypts stored secrets. The associated data binds a value to its row and column.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
}

// Changed is the bus subject that is published after a change of a trunk.
const Changed = "changed.trunks"

const (
	cacheTTL             = 3 * time.Second
	answerSeizureTTL     = time.Minute
	answerSeizureSubject = "changed.rates" // never published: the ratios expire by time only
)

// Config has the dependencies and settings of a Service.
type Config struct {
	DB     *db.DB
	Orgs   *org.Service
	Sealer Sealer // nil: for commands that read no passwords
	Bus    *bus.Bus
	Clock  clock.Clock // nil: the system clock
	Realm  string      // digest realm in challenges to carriers that authenticate with us
	Limits *Limiter    // counts the calls on trunks; nil: there are none
	Prober Prober      // nil: for commands without SIP
	Node   string      // this node; "" registers every trunk, for commands and tests without other nodes
	Held   error       // reason why no call but an emergency call leaves, as if outbound calls were stopped; nil: calls leave
	Hosts  Hosts       // checks the hosts of new and changed trunks; nil: every host is allowed
}

// Hosts decides which hosts a trunk may have.
type Hosts interface {
	// CheckHost returns the reason why a host is not allowed, with the remedy, or nil.
	CheckHost(host string) error
}

// Prober sends OPTIONS to a trunk and returns the round-trip time.
type Prober interface {
	Probe(ctx context.Context, t Trunk) (time.Duration, error)
}

// Service manages trunks. It is safe for concurrent use.
type Service struct {
	node               string
	held               error
	limits             *Limiter
	hosts              Hosts
	prober             Prober
	db                 *db.DB
	orgs               *org.Service
	sealer             Sealer
	bus                *bus.Bus
	now                func() time.Time
	realm              string
	health             health
	sources            *bus.Cache[*sourceIndex]
	lastSources        atomic.Pointer[sourceIndex] // used while the database does not answer
	trunksByOrg        *bus.Cache[[]Trunk]
	accounts           *bus.Cache[InboundAccount]
	killSwitch         *bus.Cache[bool]
	answerSeizureCache *bus.Cache[map[string]int] // answer-seizure ratios by organisation
	hostAddresses      hostAddresses
	timezones          sync.Map // *time.Location by name
}

// New returns the service.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	now := c.Clock.Now
	if c.Limits == nil {
		c.Limits = NewLimiter(now)
	}
	return &Service{node: c.Node, held: c.Held, limits: c.Limits, hosts: c.Hosts, prober: c.Prober, db: c.DB, orgs: c.Orgs,
		sealer: c.Sealer, bus: c.Bus, now: now, realm: c.Realm,
		health: newHealth(), sources: bus.NewCache[*sourceIndex](c.Bus, Changed, cacheTTL, now),
		trunksByOrg:        bus.NewCache[[]Trunk](c.Bus, Changed, cacheTTL, now),
		accounts:           bus.NewCache[InboundAccount](c.Bus, Changed, cacheTTL, now),
		killSwitch:         bus.NewCache[bool](c.Bus, killSwitchSubject, cacheTTL, now),
		answerSeizureCache: bus.NewCache[map[string]int](c.Bus, answerSeizureSubject, answerSeizureTTL, now),
		hostAddresses:      hostAddresses{byHost: map[string]map[netip.Addr]time.Time{}}}
}

// publishChange publishes, at commit, that a trunk has changed: to caches, to signalling and for the organisation's
// record.
func (s *Service) publishChange(tx db.Querier, t Trunk) {
	db.OnCommit(tx, func() {
		s.bus.Publish(Changed, nil) // for cached values of all keys
		s.bus.Publish(org.Changed, t.OrgID)
	})
}

// Get returns a trunk, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Trunk, error) {
	return get(ctx, q, org, id)
}

// Enabled returns the enabled trunks of all organisations. Signalling registers and probes them.
func (s *Service) Enabled(ctx context.Context) ([]Trunk, error) {
	all, err := enabled(ctx, s.db.Read(ctx))
	if err != nil {
		return nil, fmt.Errorf("list enabled trunks: %w", err)
	}
	return all, nil
}

// OutboundCredentials returns the user name and password with which we authenticate to the carrier. Both are "" if
// none are configured.
func (s *Service) OutboundCredentials(t Trunk) (username, password string, err error) {
	if t.Username == nil || len(t.password) == 0 {
		return "", "", nil
	}
	plain, err := s.sealer.Unseal(t.password, associatedData(t, "password"))
	if err != nil {
		return "", "", fmt.Errorf("unseal password of trunk %s: %w", t.ID, err)
	}
	return *t.Username, string(plain), nil
}

// SoleNumber returns the number of a trunk that has exactly one; "" otherwise. Carriers of such accounts send calls
// to the registered contact, without the dialled number.
func (s *Service) SoleNumber(ctx context.Context, t Trunk) (string, error) {
	return soleNumber(ctx, s.db.Read(ctx), t.OrgID, t.ID)
}

// associatedData binds a sealed value to its row and column.
func associatedData(t Trunk, column string) []byte {
	return []byte(t.OrgID + "|trunks|" + t.ID + "|" + column)
}

// addStatus sets the fields of a trunk that are not stored: health, active calls and answer-seizure ratio.
func (s *Service) addStatus(ctx context.Context, t *Trunk) {
	s.health.fillStatus(t)
	t.ActiveCalls = s.limits.Running(t.ID)
	t.ASR = nil
	if rates, err := s.answerSeizureRatios(ctx, t.OrgID); err == nil {
		if rate, known := rates[t.ID]; known {
			t.ASR = &rate
		}
	}
}
