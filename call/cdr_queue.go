package call

import (
	"context"

	"soniq/db"
)

// An OfferedAgent is an agent who was rung for a caller of a queue.
type OfferedAgent struct {
	AgentID     string  `json:"agent_id"`
	OfferedAt   db.Time `json:"offered_at"`
	RingSeconds int     `json:"ring_seconds"`
	Result      string  `json:"result" enum:"answered,no_answer,rejected,canceled"`
}

// queued adds to records what queues know of their calls: the names of queues, and whom the callers were offered to.
func (s *Service) queued(ctx context.Context, org string, records []CDR) error {
	var calls, queues []string
	for _, r := range records {
		if r.Queue != nil {
			calls, queues = append(calls, r.CallID), append(queues, r.Queue.ID)
		}
	}
	if len(calls) == 0 || s.Offered == nil {
		return nil
	}
	offered, err := s.Offered(ctx, s.DB.Read(ctx), org, calls)
	if err != nil {
		return err
	}
	names, err := s.QueueNames(ctx, s.DB.Read(ctx), org, queues)
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if r.Queue != nil {
			r.Queue.Name = names[r.Queue.ID]
			r.AgentsOffered = append(r.AgentsOffered, offered[r.CallID]...)
		}
	}
	return nil
}

// Waited notes in a call's record how long its caller waited in queues.
func (s *Service) Waited(ctx context.Context, tx db.Querier, org, id string, seconds int) error {
	const text = `UPDATE calls SET queue_seconds = $3 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, text, org, id, seconds)
	return err
}
