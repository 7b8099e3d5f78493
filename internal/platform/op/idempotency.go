package op

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// maxBody limits a JSON body, in bytes.
const maxBody = 1 << 20

// idempotent identifies a repeated request.
type idempotent struct {
	org, id, bodyHash string
}

type idempotencyKey struct{}

func unwrap(h huma.Context) (*http.Request, http.ResponseWriter) { return humago.Unwrap(h) }

// withIdempotency reads the Idempotency-Key and hashes the body. A key is unique per credential, method and path.
func withIdempotency(ctx context.Context, h huma.Context, o Operation) (context.Context, *Error) {
	key := strings.Trim(h.Header("Idempotency-Key"), `"`)
	if key == "" {
		return ctx, nil
	}
	if len(key) > 255 {
		return ctx, Invalid(Field("Idempotency-Key", "too_long", "at most 255 characters"))
	}
	r, _ := unwrap(h)
	body, err := readBody(r, o.bodyLimit()+1)
	if err != nil {
		return ctx, Fail("malformed_json", "the body could not be read")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p, _ := access.From(ctx)
	sum := sha256.Sum256([]byte(p.KeyID + "\n" + r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery + "\n" + key))
	hash := sha256.Sum256(body)
	i := &idempotent{org: p.OrgID, id: hex.EncodeToString(sum[:]), bodyHash: hex.EncodeToString(hash[:])}
	return context.WithValue(ctx, idempotencyKey{}, i), nil
}

// readBody reads at most so many bytes of a body. It asks for the memory once if the client tells the length.
func readBody(r *http.Request, most int64) ([]byte, error) {
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n < most {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r.Body, most))
	return b.Bytes(), err
}

func idempotency(ctx context.Context) *idempotent {
	i, _ := ctx.Value(idempotencyKey{}).(*idempotent)
	return i
}

// answer is the stored part of a response.
type answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
}

func answerOf[O any](o Operation, out *Out[O]) answer {
	a := answer{Status: o.SuccessCode, Header: map[string]string{}}
	if out == nil {
		return a
	}
	if out.Status != 0 {
		a.Status = out.Status
	}
	if out.Location != "" {
		a.Header["Location"] = out.Location
	}
	if out.ETag != "" {
		a.Header["ETag"] = out.ETag
	}
	a.Body, _ = encode(out.Body)
	return a
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// replayed is the stored response of an earlier request. It is passed to the library as an error, because the library
// writes error bodies unchanged.
type replayed struct{ answer }

func (r *replayed) Error() string  { return "answered before" }
func (r *replayed) GetStatus() int { return r.Status }

func (r *replayed) GetHeaders() http.Header {
	h := http.Header{"Idempotency-Replayed": {"true"}}
	for n, v := range r.Header {
		h.Set(n, v)
	}
	return h
}

func (r *replayed) ContentType(t string) string {
	if r.Status >= 400 {
		return "application/problem+json"
	}
	return t
}

func (r *replayed) MarshalJSON() ([]byte, error) { return r.Body, nil }

// write runs a changing operation. Without side effects it runs in one transaction with its idempotency row and audit
// line. With side effects it runs between a transaction that writes the row "in_progress" and one that stores the
// response.
func (c *Pipeline) write(ctx context.Context, o Operation, run func(context.Context) (answer, error)) error {
	var err error
	if o.HasSideEffects {
		err = c.writeWithSideEffects(ctx, o, run)
	} else {
		err = c.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return c.writeInTx(ctx, tx, o, run) })
	}
	return c.noteFailure(ctx, o, c.storeError(ctx, o, err))
}

func (c *Pipeline) writeInTx(ctx context.Context, tx db.Querier, o Operation, run func(context.Context) (answer, error)) error {
	i := idempotency(ctx)
	if i != nil {
		if err := c.claim(ctx, tx, i); err != nil {
			return err
		}
	}
	a, err := run(ctx)
	if err != nil {
		return err
	}
	if err := c.audit(ctx, tx, o, a); err != nil || i == nil {
		return err
	}
	return c.storeAnswer(ctx, tx, i, a)
}

func (c *Pipeline) writeWithSideEffects(ctx context.Context, o Operation, run func(context.Context) (answer, error)) error {
	i := idempotency(ctx)
	if i != nil {
		err := c.DB.Tx(ctx, func(tx db.Querier) error { return c.claim(ctx, tx, i) })
		if err != nil {
			return err
		}
	}
	a, err := run(ctx)
	if err != nil {
		return err
	}
	return c.DB.Tx(ctx, func(tx db.Querier) error {
		if err := c.audit(ctx, tx, o, a); err != nil || i == nil {
			return err
		}
		return c.storeAnswer(ctx, tx, i, a)
	})
}

// storeError stores an error response for its key as well, so that a repeated request gets the same. 401, 403, 429
// and 5xx are never stored, so that a repeated request may succeed. Neither is a refusal of the request itself: it had no effect, and the
// corrected request may have the same key.
func (c *Pipeline) storeError(ctx context.Context, o Operation, err error) error {
	i := idempotency(ctx)
	var again *replayed
	if err == nil || i == nil || errors.As(err, &again) {
		return err
	}
	e := c.toError(ctx, o, err)
	if e.Code == "idempotency_in_progress" || e.Code == "idempotency_key_reused" {
		return e
	}
	s := e.Status()
	storable := s < 500 && !slices.Contains([]int{400, 401, 403, 413, 415, 422, 429}, s)
	body, _ := encode(AsProblem(ctx, e))
	kept := c.DB.Tx(ctx, func(tx db.Querier) error {
		if !storable {
			return releaseKey(ctx, tx, i)
		}
		if err := c.claim(ctx, tx, i); err != nil && !isInProgress(err) {
			return err
		}
		return c.storeAnswer(ctx, tx, i, answer{Status: s, Body: body})
	})
	if kept != nil {
		c.Log.Warn("response for an idempotency key not stored", "operation", o.ID, "err", kept)
	}
	return e
}

func isInProgress(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == "idempotency_in_progress"
}

// claim reserves the key. It returns the stored response or an error if another request has the key.
func (c *Pipeline) claim(ctx context.Context, tx db.Querier, i *idempotent) error {
	const insert = `INSERT INTO idempotency (org_id, id, body_hash, state, status, created_at)
		VALUES ($1, $2, $3, 'in_progress', 0, $4) ON CONFLICT (org_id, id) DO NOTHING`
	r, err := tx.Exec(ctx, insert, i.org, i.id, i.bodyHash, db.At(c.now()))
	if err != nil {
		return fmt.Errorf("claim idempotency key: %w", err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return c.earlierAnswer(ctx, tx, i)
}

func (c *Pipeline) earlierAnswer(ctx context.Context, tx db.Querier, i *idempotent) error {
	const q = `SELECT body_hash, state, answer, created_at FROM idempotency WHERE org_id = $1 AND id = $2`
	var hash, state string
	var sealed []byte
	var since db.Time
	if err := tx.QueryRow(ctx, q, i.org, i.id).Scan(&hash, &state, &sealed, &since); err != nil {
		return fmt.Errorf("read idempotency key: %w", err)
	}
	if hash != i.bodyHash {
		return Fail("idempotency_key_reused", "the key was used with another body")
	}
	if state != "done" && c.now().Sub(since.Time) > abandonedAfter {
		return c.takeOver(ctx, tx, i, since)
	}
	if state != "done" {
		return Unavailable("idempotency_in_progress", "the first request with this key is still running", "1")
	}
	plain, err := c.Sealer.Unseal(sealed, i.sealContext())
	if err != nil {
		return fmt.Errorf("read stored answer: %w", err)
	}
	var a answer
	if err := json.Unmarshal(plain, &a); err != nil {
		return fmt.Errorf("read stored answer: %w", err)
	}
	return &replayed{a}
}

// abandonedAfter is the age after which a running request counts as left by a dead node. No operation takes nearly as
// long.
const abandonedAfter = 10 * time.Minute

// takeOver runs the request again. It is unknown whether the dead node has completed the effect.
func (c *Pipeline) takeOver(ctx context.Context, tx db.Querier, i *idempotent, since db.Time) error {
	const q = `UPDATE idempotency SET created_at = $3 WHERE org_id = $1 AND id = $2 AND state = 'in_progress' AND created_at = $4`
	r, err := tx.Exec(ctx, q, i.org, i.id, db.At(c.now()), since)
	if err != nil {
		return fmt.Errorf("take over idempotency key: %w", err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return Unavailable("idempotency_in_progress", "another request took this key over", "1")
}

func (i *idempotent) sealContext() []byte { return []byte(i.org + "|idempotency|" + i.id) }

func (c *Pipeline) storeAnswer(ctx context.Context, tx db.Querier, i *idempotent, a answer) error {
	plain, err := encode(a) // keeps the bytes: encoding/json would write & as \u0026
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	sealed, err := c.Sealer.Seal(plain, i.sealContext())
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	const q = `UPDATE idempotency SET state = 'done', status = $3, answer = $4 WHERE org_id = $1 AND id = $2`
	_, err = tx.Exec(ctx, q, i.org, i.id, a.Status, sealed)
	return err
}

func releaseKey(ctx context.Context, tx db.Querier, i *idempotent) error {
	_, err := tx.Exec(ctx, `DELETE FROM idempotency WHERE org_id = $1 AND id = $2 AND state = 'in_progress'`, i.org, i.id)
	return err
}

// Sweep deletes idempotency rows older than a day.
func (c *Pipeline) Sweep(ctx context.Context) (gone int64, err error) {
	err = c.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: a sweep over all organisations
		gone = 0
		return db.Affected(ctx, tx, &gone, `DELETE FROM idempotency WHERE created_at < $1`, db.At(c.now().AddDate(0, 0, -1)))
	})
	return gone, err
}
