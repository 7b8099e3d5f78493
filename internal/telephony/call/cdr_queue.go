package call

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// OfferedAgent is an agent that a queue rang for a caller.
type OfferedAgent struct {
	AgentID     string  `json:"agent_id"`
	OfferedAt   db.Time `json:"offered_at"`
	RingSeconds int     `json:"ring_seconds"`
	Result      string  `json:"result" enum:"answered,no_answer,rejected,canceled"`
	WrapUp      int     `json:"-"` // seconds
}

// QueueWait holds the time that the caller of a call in progress has waited in queues.
type QueueWait struct {
	Seconds int
	Entry   *event.QueueEntry // nil: the caller is not in a queue now
}

// addQueueWaits adds queue_seconds and queue_entry to the calls in progress.
func (s *Service) addQueueWaits(ctx context.Context, org string, calls []Call) error {
	var ids []string
	for _, c := range calls {
		if c.QueueID != nil && c.EndedAt == nil {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 || s.cfg.Queues == nil {
		return nil
	}
	found, err := s.cfg.Queues.QueueWaits(ctx, s.cfg.DB.Read(ctx), org, ids)
	if err != nil {
		return err
	}
	for i := range calls {
		if w, ok := found[calls[i].ID]; ok {
			calls[i].QueueSeconds, calls[i].QueueEntry = w.Seconds, w.Entry
		}
	}
	return nil
}

// withQueueWait adds the queue and the waiting time to a call.answered event.
func (s *Service) withQueueWait(ctx context.Context, tx db.Querier, org, queue string, e event.CallAnswered) (event.CallAnswered, error) {
	if queue == "" || s.cfg.Queues == nil {
		return e, nil
	}
	found, err := s.cfg.Queues.QueueWaits(ctx, tx, org, []string{e.CallID})
	e.QueueID, e.QueueSeconds = &queue, found[e.CallID].Seconds
	return e, err
}

// countOffers returns how many agents were rung for the caller of a queue. It returns otherwise if the call was in no
// queue.
func (s *Service) countOffers(ctx context.Context, tx db.Querier, org string, c Call, otherwise int) (int, error) {
	if c.QueueID == nil || s.cfg.Queues == nil {
		return otherwise, nil
	}
	found, err := s.cfg.Queues.OfferedAgents(ctx, tx, org, []string{c.ID})
	return len(found[c.ID]), err
}

// addQueueDetails adds data of the queues to the records: queue names, offered agents and wrap-up time.
func (s *Service) addQueueDetails(ctx context.Context, org string, records []CDR) error {
	var calls, queues []string
	for _, r := range records {
		if r.Queue != nil {
			calls, queues = append(calls, r.CallID), append(queues, r.Queue.ID)
		}
	}
	if len(calls) == 0 || s.cfg.Queues == nil {
		return nil
	}
	offered, err := s.cfg.Queues.OfferedAgents(ctx, s.cfg.DB.Read(ctx), org, calls)
	if err != nil {
		return err
	}
	names, err := s.cfg.Queues.QueueNames(ctx, s.cfg.DB.Read(ctx), org, queues)
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if r.Queue != nil {
			r.Queue.Name = names[r.Queue.ID]
			r.AgentsOffered = append(r.AgentsOffered, offered[r.CallID]...)
			for _, o := range offered[r.CallID] {
				r.WrapUpSeconds += o.WrapUp
			}
		}
	}
	return nil
}

// SetQueueSeconds stores how long the caller waited in queues in the call's row.
func (s *Service) SetQueueSeconds(ctx context.Context, tx db.Querier, org, id string, seconds int) error {
	const text = `UPDATE calls SET queue_seconds = $3 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, text, org, id, seconds)
	return err
}
