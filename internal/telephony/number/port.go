package number

import (
	"context"
	"fmt"
	"slices"
	"strings"

	orgs "soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Port is an order to port numbers from another carrier. Carriers process ports manually between each other. The
// operator of this installation sets the status.
type Port struct {
	ID          string    `json:"id" example:"por_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Status      string    `json:"status" enum:"submitted,in_review,scheduled,completed,rejected,canceled"`
	Detail      *string   `json:"detail" doc:"What the operator says of it"`
	Numbers     []PortOne `json:"numbers" nullable:"false"`
	Carrier     string    `json:"carrier" doc:"Who has the numbers now"`
	Documents   []string  `json:"documents" nullable:"false"`
	CreatedAt   db.Time   `json:"created_at"`
	UpdatedAt   db.Time   `json:"updated_at"`
	CompletedAt db.Time   `json:"completed_at" nullable:"true"`
}

// PortOne is one number of a port.
type PortOne struct {
	NumberID string `json:"number_id"`
	Number   string `json:"number"`
	Status   string `json:"status" enum:"porting_in,active,port_failed,released,suspended,releasing,pending,failed"`
}

// PortStatuses lists the states of a port in their order. The last three are final.
var PortStatuses = []string{"submitted", "in_review", "scheduled", "completed", "rejected", "canceled"}

// PortIn holds the input of CreatePort.
type PortIn struct{ Body PortFresh }

// PortFresh describes the numbers to port.
type PortFresh struct {
	Numbers   []string `json:"numbers" doc:"E.164, or as dialled in the organisation's country; at most 100"`
	Carrier   string   `json:"carrier" doc:"Who has them now"`
	Documents []string `json:"documents,omitempty" doc:"Where the operator finds the signed letter and the last bill: names or addresses, at most 20"`
}

// CreatePort stores a port for the operator. Its numbers are porting_in until the operator sets the port to a final
// status.
func (s *Service) CreatePort(ctx context.Context, in *PortIn) (*op.Out[Port], error) {
	var p Port
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		e164s, country, err := s.validatePort(ctx, in.Body)
		if err != nil {
			return err
		}
		now := db.At(s.now())
		p = Port{ID: db.NewID("por"), Status: "submitted", Carrier: in.Body.Carrier, CreatedAt: now, UpdatedAt: now}
		if err := insertPort(ctx, tx, access.Org(ctx), p, in.Body.Documents); err != nil {
			return fmt.Errorf("add port: %w", err)
		}
		for _, e164 := range e164s {
			if err := s.insertPorted(ctx, tx, p, e164, country); err != nil {
				return err
			}
		}
		p, err = getPort(ctx, tx, access.Org(ctx), p.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Port]{Body: p, Location: op.Prefix + "/numbers/ports/" + p.ID}, nil
}

// validatePort returns the numbers in E.164, or every violation of the request at once.
func (s *Service) validatePort(ctx context.Context, b PortFresh) (e164s []string, country string, err error) {
	o, err := s.orgs.Get(ctx, access.Org(ctx))
	if err != nil {
		return nil, "", fmt.Errorf("find organisation: %w", err)
	}
	var wrong []op.Violation
	if len(b.Numbers) == 0 || len(b.Numbers) > 100 {
		wrong = append(wrong, op.Field("numbers", "out_of_range", "must be 1 to 100 numbers"))
	}
	for i, text := range b.Numbers {
		e164, ok := Parse(text, o.Country)
		if !ok || slices.Contains(e164s, e164) {
			wrong = append(wrong, op.Field(fmt.Sprintf("numbers[%d]", i), "invalid_e164",
				"not a valid number for "+o.Country+", or given twice"))
		}
		e164s = append(e164s, e164)
	}
	if c := strings.TrimSpace(b.Carrier); c == "" || len([]rune(c)) > 120 {
		wrong = append(wrong, op.Field("carrier", "invalid_length", "must have 1 to 120 characters"))
	}
	if len(b.Documents) > 20 || slices.ContainsFunc(b.Documents, func(d string) bool { return d == "" || len(d) > 500 }) {
		wrong = append(wrong, op.Field("documents", "invalid_length", "at most 20, each of 1 to 500 characters"))
	}
	if len(wrong) > 0 {
		return nil, "", op.Invalid(wrong...)
	}
	return e164s, o.Country, nil
}

func (s *Service) insertPorted(ctx context.Context, tx db.Querier, p Port, e164, country string) error {
	is, org := infoOf(e164, country), access.Org(ctx)
	n := Number{ID: db.NewID("num"), OrgID: org, Number: e164, Country: is.Country, Locality: is.Locality, Type: is.Type,
		Capabilities: []string{"voice"},
		Status:       "porting_in", Provider: ProviderOwn, RecordingMode: "inherit", CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt,
		Emergency: Emergency{Status: "none"}}
	err := s.orgs.CheckQuota(ctx, tx, org, orgs.Numbers, func() (int, error) { return countNumbers(ctx, tx, org) })
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx db.Querier) error { return insertNumber(ctx, tx, n) })
	if db.IsConflict(err) {
		return op.Fail("number_unavailable", e164+" is one of your numbers already")
	}
	if err != nil {
		return fmt.Errorf("add number: %w", err)
	}
	const text = `INSERT INTO number_port_items (org_id, port_id, number_id) VALUES ($1, $2, $3)`
	_, err = tx.Exec(ctx, text, org, p.ID, n.ID)
	return err
}

// OnePort holds the id of a port.
type OnePort struct {
	ID string `path:"id" maxLength:"40" example:"por_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// ShowPort returns a port.
func (s *Service) ShowPort(ctx context.Context, in *OnePort) (*op.Out[Port], error) {
	p, err := getPort(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if db.IsNone(err) {
		return nil, op.NotFound("port")
	}
	if err != nil {
		return nil, fmt.Errorf("get port: %w", err)
	}
	return op.OK(p)
}

func insertPort(ctx context.Context, tx db.Querier, org string, p Port, documents []string) error {
	const text = `INSERT INTO number_ports (org_id, id, carrier, documents, status, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	_, err := tx.Exec(ctx, text, org, p.ID, p.Carrier, db.AsJSON(append([]string{}, documents...)), p.Status, p.CreatedAt, p.UpdatedAt)
	return err
}

func getPort(ctx context.Context, q db.Querier, org, id string) (Port, error) {
	const text = `SELECT id, status, detail, carrier, documents, created_at, updated_at, completed_at FROM number_ports WHERE org_id = $1 AND id = $2`
	p := Port{Numbers: []PortOne{}}
	var documents db.JSON[[]string]
	row := q.QueryRow(ctx, text, org, id)
	if err := row.Scan(&p.ID, &p.Status, &p.Detail, &p.Carrier, &documents, &p.CreatedAt, &p.UpdatedAt, &p.CompletedAt); err != nil {
		return p, err
	}
	p.Documents = append([]string{}, documents.V...)
	const items = `SELECT n.id, n.number, n.status FROM number_port_items i JOIN numbers n ON n.org_id = i.org_id AND n.id = i.number_id
		WHERE i.org_id = $1 AND i.port_id = $2 ORDER BY n.id`
	rows, err := q.Query(ctx, items, org, id)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		var x PortOne
		if err := rows.Scan(&x.NumberID, &x.Number, &x.Status); err != nil {
			return p, err
		}
		p.Numbers = append(p.Numbers, x)
	}
	return p, rows.Err()
}

// SetPort sets the status of a port; the operator calls it by the CLI. With completed its numbers become active on a
// trunk; with rejected and canceled they become port_failed. These three states are final.
func (s *Service) SetPort(ctx context.Context, org, id, status, trunk, detail string) (Port, error) {
	var p Port
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if p, err = getPort(ctx, tx, org, id); err != nil {
			return fmt.Errorf("find port %s: %w", id, err)
		}
		if err := p.checkTransition(status, trunk); err != nil {
			return err
		}
		now := db.At(s.now())
		var completed db.Time
		if status == "completed" {
			completed = now
		}
		const text = `UPDATE number_ports SET status = $3, detail = COALESCE($4, detail), updated_at = $5, completed_at = $6 WHERE org_id = $1 AND id = $2`
		if _, err := tx.Exec(ctx, text, org, id, status, db.Null(detail), now, completed); err != nil {
			return err
		}
		if slices.Index(PortStatuses, status) >= slices.Index(PortStatuses, "completed") {
			if err := s.finishPorted(ctx, tx, org, p, status, trunk); err != nil {
				return err
			}
		}
		p, err = getPort(ctx, tx, org, id)
		return err
	})
	return p, err
}

func (p Port) checkTransition(status, trunk string) error {
	switch {
	case !slices.Contains(PortStatuses, status):
		return op.Invalid(op.Field("status", "invalid_value", "must be one of "+strings.Join(PortStatuses, ", ")))
	case slices.Contains([]string{"completed", "rejected", "canceled"}, p.Status):
		return op.State("the port is over", p.Status)
	case status == "completed" && trunk == "":
		return op.Invalid(op.Field("trunk_id", "required", "completed numbers need the trunk their calls come over"))
	}
	return nil
}

// finishPorted sets the numbers of a finished port to active or port_failed.
func (s *Service) finishPorted(ctx context.Context, tx db.Querier, org string, p Port, status, trunk string) error {
	for _, x := range p.Numbers {
		n := Number{OrgID: org, ID: x.NumberID, Number: x.Number}
		if status != "completed" {
			if err := s.finishOrder(ctx, n, "port_failed", OrderStatus{}); err != nil {
				return err
			}
			continue
		}
		const text = `UPDATE numbers SET trunk_id = $3 WHERE org_id = $1 AND id = $2 AND status = 'porting_in'`
		if _, err := tx.Exec(ctx, text, org, x.NumberID, trunk); db.IsForeignKey(err) {
			return op.Invalid(op.Field("trunk_id", "not_found", "the organisation has no such trunk"))
		} else if err != nil {
			return err
		}
		if err := s.finishOrder(ctx, n, "active", OrderStatus{}); err != nil {
			return err
		}
	}
	return nil
}
