// Package flow stores call flows: menus, hunt groups, voice agents and graphs of steps. It checks them, keeps their
// versions, and compiles them to programs that package routing runs.
package flow

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Flow is a sequence of steps for callers.
type Flow struct {
	ID           string   `json:"id" example:"flw_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name         string   `json:"name"`
	Kind         string   `json:"kind" enum:"ivr,hunt_group,ai_agent,graph"`
	Status       string   `json:"status" enum:"draft,published,archived"`
	Version      int      `json:"version" doc:"In force; 0 before the first is published"`
	DraftVersion *int     `json:"draft_version" doc:"What the draft becomes when it is published; null where there is none"`
	Entry        string   `json:"entry,omitempty"`
	Nodes        []Node   `json:"nodes,omitempty"`
	Warnings     []Fault  `json:"warnings,omitempty"`
	NumberIDs    []string `json:"number_ids" nullable:"false"`
	Timezone     *string  `json:"timezone" doc:"null: that of the organisation"`
	Language     *string  `json:"language" doc:"null: that of the organisation"`
	CreatedAt    db.Time  `json:"created_at"`
	UpdatedAt    db.Time  `json:"updated_at"`
	PublishedAt  db.Time  `json:"published_at" nullable:"true"`

	OrgID string `json:"-"`
	draft *Graph
}

// States of a flow.
const (
	Draft     = "draft"
	Published = "published"
	Archived  = "archived"
)

// Version is a published version of a flow. It never changes.
type Version struct {
	ID          string  `json:"id" example:"flv_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Version     int     `json:"version"`
	InForce     bool    `json:"in_force"`
	Comment     *string `json:"comment"`
	PublishedBy *string `json:"published_by" doc:"User or API key"`
	PublishedAt db.Time `json:"published_at"`
	NodesCount  int     `json:"nodes_count"`

	graph Graph
}

// Changed is the bus subject on which org/id of a flow is published when its published version changes.
const Changed = "changed.flows"

// Config holds the services that the package uses.
type Config struct {
	DB         *db.DB
	Orgs       *org.Service
	Bus        *bus.Bus
	Clock      clock.Clock // nil: the system clock
	References References
	Numbers    Numbers
	Queues     Queues
	Forwards   Forwards
}

// Numbers returns and changes the numbers that route to flows.
type Numbers interface {
	// IDsOfFlows returns the numbers that route to flows, by flow id.
	IDsOfFlows(ctx context.Context, q db.Querier, org string, flows []string) (map[string][]string, error)
	// AssignToFlow routes numbers to a flow. It returns the numbers that the organisation does not have.
	AssignToFlow(ctx context.Context, tx db.Querier, org, flow string, numbers []string) (missing []string, err error)
}

// Queues returns the ids of the queues that overflow into a flow.
type Queues interface {
	OverflowingToFlow(ctx context.Context, q db.Querier, org, flow string) ([]string, error)
}

// Forwards returns the ids of the users who forward to a flow, and of the numbers that fall back to it.
type Forwards interface {
	ForwardingToFlow(ctx context.Context, q db.Querier, org, flow string) ([]string, error)
}

// Service manages flows. It is safe for concurrent use.
type Service struct {
	cfg      Config
	programs *bus.Cache[*Program]
}

const programCacheTTL = time.Minute

// New returns a service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, programs: bus.NewCache[*Program](c.Bus, Changed, programCacheTTL, c.Clock.Now)}
}

// Get returns a flow that is not removed, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Flow, error) {
	f, err := get(ctx, q, org, id)
	if err == nil && f.Status == Archived {
		return f, db.ErrNone
	}
	return f, err
}

// Program returns the published version of a flow as a program, or db.ErrNone. The result is cached, because inbound
// calls wait for it. A call keeps the program it entered.
func (s *Service) Program(ctx context.Context, org, id string) (*Program, error) {
	return s.programs.Get(org+"/"+id, func() (*Program, error) {
		q := s.cfg.DB.Read(db.Detached(ctx))
		f, err := s.Get(ctx, q, org, id)
		if err == nil && f.Version == 0 {
			err = db.ErrNone
		}
		if err != nil {
			return nil, fmt.Errorf("find flow: %w", err)
		}
		return s.ProgramOf(ctx, q, f, f.Version)
	})
}

// ProgramOf returns a given version of a flow as a program, for calls that continue after a restart.
func (s *Service) ProgramOf(ctx context.Context, q db.Querier, f Flow, version int) (*Program, error) {
	v, err := getVersion(ctx, q, f.OrgID, f.ID, version)
	if err != nil {
		return nil, fmt.Errorf("find version %d of flow: %w", version, err)
	}
	p, _, err := compile(ctx, f.OrgID, acceptAll, v.graph)
	p.FlowID, p.Name, p.Version = f.ID, f.Name, version
	return p, err
}

// CheckDestination returns the problem of a destination such as queue:que_… or a number; "" if it is valid.
func (s *Service) CheckDestination(ctx context.Context, org, to string) (wrong string, err error) {
	return s.cfg.References.CheckDestination(ctx, org, to)
}

// acceptAll accepts every reference. Published versions are compiled with it, because their references were checked
// at publication.
var acceptAll acceptedReferences

type acceptedReferences struct{}

func (acceptedReferences) CheckDestination(context.Context, string, string) (string, error) {
	return "", nil
}

func (acceptedReferences) HasAudio(context.Context, string, string) (bool, error) { return true, nil }

func (acceptedReferences) OwnsNumber(context.Context, string, string) (bool, error) { return true, nil }

func (acceptedReferences) CheckSpoken(context.Context, string, Spoken) (string, error) {
	return "", nil
}

func (acceptedReferences) CheckHeard(context.Context, string, string, bool) (string, error) {
	return "", nil
}

// invalidFlow returns the error for the faults of a graph.
func invalidFlow(faults []Fault) error {
	e := &op.Error{Code: "flow_invalid", Detail: faults[0].Message}
	for _, f := range faults {
		field := "nodes"
		if f.NodeID != "" {
			field = "nodes." + f.NodeID
		}
		e.Fields = append(e.Fields, op.Field(field, f.Code, f.Message))
	}
	if first := e.Fields[0]; first.Field != "nodes" {
		e.Detail = first.Field + ": " + first.Message
	}
	return e
}

// parseVersion parses the version in a request: draft, published or a number.
func parseVersion(text string) (number int, draft, ok bool) {
	switch text {
	case "draft":
		return 0, true, true
	case "published":
		return 0, false, true
	}
	n, err := strconv.Atoi(text)
	return n, false, err == nil && n > 0
}
