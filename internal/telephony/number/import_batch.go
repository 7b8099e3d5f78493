package number

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// importBatch holds the numbers of an import, and the violations of each assignment, looked up once.
type importBatch struct {
	numbers []Number
	targets map[importTarget][]op.Violation
}

// buildBatch builds the numbers of an import, or returns every violation at once.
func (s *Service) buildBatch(ctx context.Context, o org.Organization, lines []importLine) (b importBatch, wrong []op.Violation, err error) {
	q := s.db.Read(ctx)
	if wrong, err = s.resolveUsers(ctx, q, o.ID, lines); err != nil {
		return b, nil, err
	}
	b = importBatch{make([]Number, 0, len(lines)), map[importTarget][]op.Violation{}}
	seen := map[string]string{}
	for _, l := range lines {
		bad, err := s.checkTarget(ctx, q, b.targets, l)
		if err != nil {
			return b, nil, err
		}
		e164, ok := Parse(l.Number, o.Country)
		switch first, twice := seen[e164]; {
		case !ok:
			bad = append(bad, op.Field(l.field("number"), "invalid_e164", "not a valid number for "+o.Country))
		case twice:
			bad = append(bad, op.Field(l.field("number"), "duplicate", e164+" is there already, in "+first))
		default:
			seen[e164] = l.position
		}
		wrong = append(wrong, append(bad, l.checkLengths()...)...)
		n := s.newOwnNumber(o, l.Fresh, e164)
		n.TrunkID = &l.TrunkID
		if err := s.admit(ctx, q, &n); err != nil {
			return b, nil, err
		}
		b.numbers = append(b.numbers, n)
	}
	taken, err := takenNumbers(ctx, q, o.ID, b.numbers)
	for i, n := range b.numbers {
		if taken[n.Number] {
			wrong = append(wrong, op.Field(lines[i].field("number"), "number_unavailable", n.Number+" is one of your numbers already"))
		}
	}
	return b, dedupe(wrong), err
}

// dedupe removes repeated violations: a violation of a trunk applies to all of its numbers.
func dedupe(all []op.Violation) (some []op.Violation) {
	said := map[op.Violation]bool{}
	for _, v := range all {
		if !said[v] {
			said[v], some = true, append(some, v)
		}
	}
	return some
}

func (l importLine) checkLengths() (wrong []op.Violation) {
	if len([]rune(l.Label)) > 120 {
		wrong = append(wrong, op.Field(l.field("label"), "invalid_length", "must have at most 120 characters"))
	}
	if len([]rune(l.Emergency.Address)) > 500 {
		wrong = append(wrong, op.Field(l.field("emergency_address"), "invalid_length", "must have at most 500 characters"))
	}
	return wrong
}

// importTarget is the trunk and the assignment of a number.
type importTarget struct{ trunk, user, flow, queue string }

// checkTarget returns the violations of a line's trunk and assignment. Results are kept in known, because most lines
// have the same ones.
func (s *Service) checkTarget(ctx context.Context, q db.Querier, known map[importTarget][]op.Violation, l importLine) ([]op.Violation,
	error) {
	t := importTarget{l.TrunkID, l.UserID, l.FlowID, l.QueueID}
	found, ok := known[t]
	if !ok {
		var err error
		if found, err = s.validateTargets(ctx, q, t.trunk, t.user, t.flow, t.queue); err != nil {
			return nil, err
		}
		if t.trunk == "" {
			found = append(found, op.Field("trunk_id", "required", "name the trunk of numbers you own"))
		}
		known[t] = found
	}
	wrong := make([]op.Violation, len(found))
	for i, v := range found {
		wrong[i] = op.Field(l.field(v.Field), v.Code, v.Message)
	}
	return wrong, nil
}

// resolveUsers sets the user id of lines that name a user by id, extension or e-mail address.
func (s *Service) resolveUsers(ctx context.Context, q db.Querier, org string, lines []importLine) (wrong []op.Violation, err error) {
	var ids map[string]string
	for i := range lines {
		l := &lines[i]
		if l.userRef == "" {
			continue
		}
		if ids == nil {
			if ids, err = usersByName(ctx, q, org); err != nil {
				return nil, err
			}
		}
		id := ids[strings.ToLower(l.userRef)]
		switch {
		case id == "":
			wrong = append(wrong, op.Field(l.field("user"), "not_found", "no user has this id, extension or e-mail address"))
		case l.UserID != "" && l.UserID != id:
			wrong = append(wrong, op.Field(l.field("user"), "ambiguous", "user_id names another"))
		default:
			l.UserID = id
		}
	}
	return wrong, nil
}

// usersByName maps ids, extensions and e-mail addresses in lower case to user ids.
func usersByName(ctx context.Context, q db.Querier, org string) (map[string]string, error) {
	rows, err := q.Query(ctx, `SELECT id, extension, lower(email) FROM users WHERE org_id = $1 AND status <> 'removed'`, org)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id string
		var extension, email db.Null
		if err := rows.Scan(&id, &extension, &email); err != nil {
			return nil, err
		}
		for _, name := range []string{strings.ToLower(id), string(extension), string(email)} {
			if name != "" {
				all[name] = id
			}
		}
	}
	return all, rows.Err()
}

// takenNumbers returns those of the numbers that the organisation has already. It reads 500 per statement.
func takenNumbers(ctx context.Context, q db.Querier, org string, numbers []Number) (map[string]bool, error) {
	taken := map[string]bool{}
	const size = 500
	for from := 0; from < len(numbers); from += size {
		chunk := make([]string, 0, size)
		for _, n := range numbers[from:min(from+size, len(numbers))] {
			chunk = append(chunk, n.Number)
		}
		if err := addTaken(ctx, q, org, chunk, taken); err != nil {
			return nil, fmt.Errorf("find owners of numbers: %w", err)
		}
	}
	return taken, nil
}

func addTaken(ctx context.Context, q db.Querier, org string, chunk []string, taken map[string]bool) error {
	const all = `SELECT number FROM numbers WHERE org_id = $1 AND status NOT IN ('released', 'failed', 'port_failed')`
	text, args := db.Where(all, org).In("number", chunk).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e164 string
		if err := rows.Scan(&e164); err != nil {
			return err
		}
		taken[e164] = true
	}
	return rows.Err()
}

// insertBatch inserts the numbers and publishes number.allocated for each. It validates the assignments again in the
// transaction, because they may have been deleted meanwhile.
func (s *Service) insertBatch(ctx context.Context, tx db.Querier, b importBatch) error {
	for t := range b.targets {
		if wrong, err := s.validateTargets(ctx, tx, t.trunk, t.user, t.flow, t.queue); err != nil {
			return err
		} else if len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
	}
	err := insertAll(ctx, tx, b.numbers)
	if db.IsConflict(err) {
		return op.Fail("number_unavailable", "one of the numbers was taken meanwhile; try again")
	}
	if err != nil {
		return fmt.Errorf("add numbers: %w", err)
	}
	named := map[importTarget]event.Assignment{}
	for _, n := range b.numbers {
		if n.isClaim() {
			continue
		}
		t := importTarget{user: deref(n.AssignedTo.idIf("user")), flow: deref(n.AssignedTo.idIf("flow")),
			queue: deref(n.AssignedTo.idIf("queue"))}
		if _, ok := named[t]; !ok {
			full, err := getNumber(ctx, tx, n.OrgID, n.ID)
			if err != nil {
				return fmt.Errorf("read number: %w", err)
			}
			named[t] = event.Assignment{Type: full.AssignedTo.Type, ID: full.AssignedTo.ID, Name: full.AssignedTo.Name}
		}
		if err := s.publishAllocatedTo(ctx, tx, n, named[t]); err != nil {
			return err
		}
	}
	db.OnCommit(tx, func() { s.bus.Publish(Changed, nil) })
	return nil
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
