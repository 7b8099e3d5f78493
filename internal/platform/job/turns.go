package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"soniq/internal/platform/db"
)

// orgsWaiting selects the organisations with ready jobs by skipping through the index from one to the next.
// tenant: each organisation gets its turn
const orgsWaiting = `WITH RECURSIVE o(org) AS (
		SELECT min(org_id) FROM jobs WHERE queue = $1 AND state = 0 AND lane <> ''
		UNION ALL
		SELECT (SELECT min(j.org_id) FROM jobs j WHERE j.queue = $1 AND j.state = 0 AND j.lane <> '' AND j.org_id > o.org)
		FROM o WHERE o.org IS NOT NULL)
	SELECT org FROM o WHERE org IS NOT NULL`

// lanesWaiting selects the lanes of an organisation with due jobs, in the same way.
const lanesWaiting = `WITH RECURSIVE l(lane) AS (
		SELECT min(lane) FROM jobs WHERE org_id = $1 AND queue = $2 AND state = 0 AND lane <> ''
		UNION ALL
		SELECT (SELECT min(j.lane) FROM jobs j WHERE j.org_id = $1 AND j.queue = $2 AND j.state = 0 AND j.lane <> '' AND j.lane > l.lane)
		FROM l WHERE l.lane IS NOT NULL)
	SELECT lane FROM l WHERE lane IS NOT NULL AND EXISTS (SELECT 1 FROM jobs d
		WHERE d.org_id = $1 AND d.queue = $2 AND d.state = 0 AND d.lane <> '' AND d.lane = l.lane AND d.run_at <= $3)`

// turns is the state of a queue with a backlog: organisations have a turn one after the other, and in its turn each has the next of its
// lanes.
type turns struct {
	last  string              // organisation that had the last turn
	lanes map[string][]string // lanes of each organisation that have not had a turn since they were listed
}

// share is a lane of an organisation that has a turn.
type share struct{ org, lane string }

// round is a look at the organisations.
type round struct {
	*Runner
	orgs   []string        // in the order of their turns; those that have nothing to claim are removed
	listed map[string]bool // organisations whose lanes were listed in this round
}

// claimTurns claims from the next organisations, until it has jobs or none has anything to claim.
func (r *Runner) claimTurns(ctx context.Context, free int) (jobs []Job, err error) {
	orgs, err := r.texts(ctx, orgsWaiting, r.Name)
	if err != nil {
		return nil, fmt.Errorf("list organisations: %w", err)
	}
	lanes := map[string][]string{}
	for _, org := range orgs {
		lanes[org] = r.turns.lanes[org]
	}
	r.turns.lanes = lanes
	next, _ := slices.BinarySearch(orgs, r.turns.last+"\x00") // the first one behind the last
	n := &round{r, slices.Concat(orgs[next:], orgs[:next]), map[string]bool{}}
	for len(jobs) == 0 {
		shares, err := n.shares(ctx, min(free, claimSize))
		if err != nil || len(shares) == 0 {
			return nil, err
		}
		if jobs, err = r.claimShares(ctx, shares, min(free, claimSize)); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func (r *Runner) texts(ctx context.Context, q string, args ...any) ([]string, error) {
	return db.Strings(ctx, r.DB.Read(ctx), "find turns", q, args...)
}

// shares gives up to n turns, each to an organisation with free capacity and its next lane.
func (n *round) shares(ctx context.Context, most int) (shares []share, err error) {
	for len(n.orgs) > 0 && len(shares) < most {
		org := n.orgs[0]
		n.orgs = n.orgs[1:]
		if n.orgCapacity(org) <= 0 {
			continue
		}
		lane, err := n.nextLane(ctx, org)
		if err != nil {
			return nil, err
		}
		if lane != "" {
			n.orgs, n.turns.last = append(n.orgs, org), org
			shares = append(shares, share{org, lane})
		}
	}
	return shares, nil
}

// nextLane removes the next lane with free capacity from the list of an organisation. It lists the lanes at most once in a round; "" if
// none is left.
func (n *round) nextLane(ctx context.Context, org string) (string, error) {
	for {
		lanes := n.turns.lanes[org]
		for i, l := range lanes {
			if n.capacity(l) > 0 {
				n.turns.lanes[org] = lanes[i+1:]
				return l, nil
			}
		}
		n.turns.lanes[org] = nil
		if n.listed[org] {
			return "", nil
		}
		n.listed[org] = true
		lanes, err := n.texts(ctx, lanesWaiting, org, n.Name, db.At(n.Queue.now()))
		if err != nil {
			return "", fmt.Errorf("list lanes: %w", err)
		}
		n.turns.lanes[org] = lanes
	}
}

// claimShares claims some jobs of each share. No organisation and no lane gets more than its capacity.
func (r *Runner) claimShares(ctx context.Context, shares []share, free int) (jobs []Job, err error) {
	err = r.tx(ctx, func(tx db.Querier) (err error) {
		jobs = nil
		taken := map[string]int{} // by organisation, and by lane behind a space
		for i, s := range shares {
			n := (free - len(jobs)) / (len(shares) - i) // at least 1, because len(shares) <= free
			n = min(n, r.capacity(s.lane)-taken[" "+s.lane], r.orgCapacity(s.org)-taken[s.org])
			before := len(jobs)
			if jobs, err = r.claimLane(ctx, tx, s, n, jobs); err != nil {
				return err
			}
			taken[s.org] += len(jobs) - before
			taken[" "+s.lane] += len(jobs) - before
		}
		return nil
	})
	return jobs, err
}

func (r *Runner) claimLane(ctx context.Context, tx db.Querier, s share, n int, jobs []Job) ([]Job, error) {
	if n <= 0 {
		return jobs, nil
	}
	now := r.Queue.now()
	q := `WITH picked AS MATERIALIZED (
			SELECT id FROM jobs j WHERE org_id = $1 AND queue = $2 AND lane = $3 AND lane <> '' AND state = 0
			AND run_at <= $4 AND ` + openEarlier + `
			ORDER BY run_at, id LIMIT ` + strconv.Itoa(n) + r.DB.SkipLocked() + `)
		UPDATE jobs SET state = 1, attempt = attempt + 1, worker = $5, lease_until = $6
		WHERE ` + stillReady + ` AND id IN (SELECT id FROM picked)` +
		returning // without MATERIALIZED, PostgreSQL may run it again for each row
	return scanJobs(ctx, tx, jobs, q, s.org, r.Name, s.lane, db.At(now), r.Node, db.At(now.Add(r.Options.Timeout+leaseSlack)))
}
