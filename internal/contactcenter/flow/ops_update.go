package flow

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn is the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch of a flow. Changes other than the name make a draft.
type Patch struct {
	Name      op.Change[string] `json:"name,omitzero"`
	Entry     op.Change[string] `json:"entry,omitzero"`
	Nodes     op.Change[[]Node] `json:"nodes,omitzero" doc:"All of them"`
	IVR       *IVR              `json:"ivr,omitempty"`
	HuntGroup *Hunt             `json:"hunt_group,omitempty"`
	AIAgent   *Assistant        `json:"ai_agent,omitempty"`
	Timezone  op.Change[string] `json:"timezone,omitzero"`
	Language  op.Change[string] `json:"language,omitzero"`
}

// apply applies the patch. redrawn reports whether the graph changed.
func (p Patch) apply(f *Flow, g *Graph) (redrawn bool, wrong []op.Violation) {
	p.Name.Apply(&f.Name)
	short := Fresh{IVR: p.IVR, HuntGroup: p.HuntGroup, AIAgent: p.AIAgent, Timezone: g.Timezone, Language: g.Language}
	if p.IVR != nil || p.HuntGroup != nil || p.AIAgent != nil {
		*g, f.Kind, wrong = short.graph()
		redrawn = true
	}
	if p.Nodes.Set || p.Entry.Set {
		if redrawn {
			wrong = append(wrong, op.Field("nodes", "ambiguous", "give one of nodes with entry, ivr, hunt_group and ai_agent"))
		}
		p.Nodes.Apply(&g.Nodes)
		p.Entry.Apply(&g.Entry)
		f.Kind, redrawn = "graph", true
	}
	p.Timezone.Apply(&g.Timezone)
	p.Language.Apply(&g.Language)
	return redrawn || p.Timezone.Set || p.Language.Set, append(fieldViolations(f.Name, g.Timezone, g.Language), wrong...)
}

// Update changes the name of a flow at once, and everything else in its draft. Calls use the published version.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Flow], error) {
	var f Flow
	var g Graph
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if f, err = s.findFlow(ctx, tx, in.ID, in.Match); err != nil {
			return err
		}
		if g, err = s.graphOf(ctx, tx, f, ""); err != nil {
			return err
		}
		redrawn, wrong := in.Body.apply(&f, &g)
		if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if redrawn {
			next := f.Version + 1
			f.draft, f.DraftVersion = &g, &next
			if err := s.check(ctx, &f); err != nil {
				return err
			}
		}
		return s.save(ctx, tx, &f)
	})
	if err != nil {
		return nil, err
	}
	if f, err = s.withGraph(ctx, f, g); err != nil {
		return nil, err
	}
	return op.Versioned(f, f.UpdatedAt)
}

func (s *Service) save(ctx context.Context, tx db.Querier, f *Flow) error {
	f.UpdatedAt = db.At(s.cfg.Clock.Now())
	if err := update(ctx, tx, *f); err != nil {
		return fmt.Errorf("change flow: %w", err)
	}
	key := f.OrgID + "/" + f.ID
	db.OnCommit(tx, func() { s.cfg.Bus.Publish(Changed, key) })
	return nil
}

// DeleteIn identifies the flow to remove.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete removes a flow without references. Calls in the flow continue. Its versions stay for the history of calls.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		f, err := s.findFlow(ctx, tx, in.ID, in.Match)
		if err != nil {
			return err
		}
		used, err := s.usedBy(ctx, tx, f)
		if err != nil {
			return err
		}
		if len(used) > 0 {
			return op.InUse("users, numbers, queues or other flows lead to this flow", used...)
		}
		f.Status, f.draft = Archived, nil
		return s.save(ctx, tx, &f)
	})
}

func (s *Service) usedBy(ctx context.Context, q db.Querier, f Flow) ([]string, error) {
	numbers, err := s.cfg.Numbers.IDsOfFlows(ctx, q, f.OrgID, []string{f.ID})
	if err != nil {
		return nil, err
	}
	used := numbers[f.ID]
	queues, err := s.cfg.Queues.OverflowingToFlow(ctx, q, f.OrgID, f.ID)
	if err != nil {
		return nil, fmt.Errorf("find what leads to the flow: %w", err)
	}
	forwards, err := s.cfg.Forwards.ForwardingToFlow(ctx, q, f.OrgID, f.ID)
	if err != nil {
		return nil, fmt.Errorf("find what leads to the flow: %w", err)
	}
	used = append(append(used, queues...), forwards...)
	others, err := flowsMentioning(ctx, q, f.OrgID, f.ID)
	return append(used, slices.DeleteFunc(others, func(id string) bool { return id == f.ID })...), err
}
