package memory

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/visibility"
	"soniq/internal/telephony/number"
)

// row is the searchable data of a passage.
type row struct {
	key       int64
	phone     string
	at        db.Time
	kind      string
	direction string
	agent     string
	queue     string
	model     string
	vector    quantised
	terms     []termCount
}

func insertCall(ctx context.Context, tx db.Querier, org string, c Call) error {
	const q = `INSERT INTO memory_calls (org_id, call_id, phone, at, direction, status, talk_seconds, agent_id, agent_name,
			queue_id, contact_id, recording_id, tags, summary, outcome, sentiment, topics, action_items)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`
	_, err := tx.Exec(ctx, q, org, c.ID, c.Phone, db.At(c.At), c.Direction, c.Status, c.TalkSeconds, db.Null(c.AgentID),
		db.Null(c.AgentName), db.Null(c.QueueID), db.Null(c.ContactID), db.Null(c.RecordingID), db.AsJSON(c.Tags), c.Summary,
		c.Outcome, db.Null(c.Sentiment), db.AsJSON(c.Topics), db.AsJSON(c.Items))
	return err
}

func insertItem(ctx context.Context, tx db.Querier, org, callID, id string, key int64, p passage) error {
	const q = `INSERT INTO memory_items (org_id, key, id, call_id, kind, start_ms, end_ms, text)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	var start, end sql.NullInt64
	if p.kind == KindTranscript {
		start, end = sql.NullInt64{Int64: int64(p.startMS), Valid: true}, sql.NullInt64{Int64: int64(p.endMS), Valid: true}
	}
	_, err := tx.Exec(ctx, q, org, key, id, callID, p.kind, start, end, p.text)
	return err
}

func insertVector(ctx context.Context, tx db.Querier, org string, r row) error {
	const q = `INSERT INTO memory_vectors (org_id, key, phone, at, kind, direction, agent_id, queue_id, model, vector, terms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	_, err := tx.Exec(ctx, q, org, r.key, r.phone, r.at, r.kind, r.direction, db.Null(r.agent), db.Null(r.queue), r.model,
		r.vector.bytes(), encodeTerms(r.terms))
	return err
}

// deleteCall deletes a call; its passages are deleted by foreign key cascade.
func deleteCall(ctx context.Context, tx db.Querier, org, callID string) error {
	const q = `DELETE FROM memory_calls WHERE org_id = $1 AND call_id = $2`
	_, err := tx.Exec(ctx, q, org, callID)
	return err
}

// UnlinkRecording removes a recording from the entry of its call, in the caller's transaction.
func (s *Service) UnlinkRecording(ctx context.Context, tx db.Querier, org, callID, recordingID string) error {
	const q = `UPDATE memory_calls SET recording_id = NULL WHERE org_id = $1 AND call_id = $2 AND recording_id = $3`
	_, err := tx.Exec(ctx, q, org, callID, recordingID)
	return wrapError("forget recording", err)
}

const rowColumns = `key, phone, at, kind, direction, agent_id, queue_id, model, vector, terms`

// rowsFrom reads at most limit rows from a key on, in the order of keys.
func rowsFrom(ctx context.Context, q db.Querier, org string, key int64, since db.Time, limit int, each func(row) error) error {
	const text = `SELECT ` + rowColumns + ` FROM memory_vectors WHERE org_id = $1 AND key >= $2 AND +at >= $3
		UNION ALL SELECT ` + factColumns + ` FROM memory_facts WHERE org_id = $1 AND key >= $2 AND created_at >= $3 ORDER BY key LIMIT $4`
	rows, err := q.Query(ctx, text, org, key, since, limit)
	if err != nil {
		return err
	}
	return eachRow(rows, each)
}

// rowsOfPhone reads the newest rows of one number.
func rowsOfPhone(ctx context.Context, q db.Querier, org, phone string, since, until db.Time, limit int, each func(row) error) error {
	const text = `SELECT ` + rowColumns + ` FROM memory_vectors WHERE org_id = $1 AND phone IN ($2, $6) AND at >= $3 AND at < $4
		UNION ALL SELECT ` + factColumns + ` FROM memory_facts
		WHERE org_id = $1 AND phone IN ($2, $6) AND created_at >= $3 AND created_at < $4 AND key IS NOT NULL ORDER BY at DESC LIMIT $5`
	given, other := number.Spellings(phone)
	rows, err := q.Query(ctx, text, org, given, since, until, limit, other)
	if err != nil {
		return err
	}
	return eachRow(rows, each)
}

// keysPerStatement has the sizes of IN lists; shorter lists are filled up by repeating a key, so that few statements
// are prepared.
var keysPerStatement = []int{16, 64, 256}

// byKeys runs a statement that ends in "key IN" for all keys, in parts.
func byKeys(ctx context.Context, q db.Querier, statement, org string, keys []int64, scan func(*sql.Rows) error) error {
	for len(keys) > 0 {
		size := keysPerStatement[len(keysPerStatement)-1]
		for _, n := range keysPerStatement {
			if len(keys) <= n {
				size = n
				break
			}
		}
		n := min(len(keys), size)
		args := make([]any, 1, size+1)
		args[0] = org
		for i := range size {
			args = append(args, keys[min(i, n-1)])
		}
		rows, err := q.Query(ctx, statement+" ("+placeholders(size)+")", args...)
		if err != nil {
			return err
		}
		if err := scanAll(rows, scan); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// placeholders returns "$2, $3, …".
func placeholders(n int) string {
	all := []string{"$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"}[:min(n, 8)]
	for i := len(all); i < n; i++ {
		all = append(all, "$"+strconv.Itoa(i+2))
	}
	return strings.Join(all, ", ")
}

// vectorsByKey reads vectors and words of passages.
func vectorsByKey(ctx context.Context, q db.Querier, org string, keys []int64, each func(row) error) error {
	const text = `SELECT ` + rowColumns + ` FROM memory_vectors WHERE org_id = $1 AND key IN`
	return byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		return each(r)
	})
}

// foundItem is an entry with its call, as results show it.
type foundItem struct {
	key                int64
	id, callID, kind   string
	isText             bool // a fact, note or message: not a passage of a call
	startMS, endMS     sql.NullInt64
	text               string
	phone              string
	at                 db.Time
	direction          string
	agentID, agentName db.Null
	contactID          db.Null
	recordingID        db.Null
	tags               db.JSON[[]string]
	summary            string
}

// itemsByKey reads passages with their calls.
func itemsByKey(ctx context.Context, q db.Querier, org string, keys []int64, each func(foundItem)) error {
	const text = `SELECT i.key, i.id, i.call_id, i.kind, i.start_ms, i.end_ms, i.text, c.phone, c.at, c.direction, c.agent_id,
			c.agent_name, c.contact_id, c.recording_id, c.tags, c.summary
		FROM memory_items i JOIN memory_calls c ON c.org_id = i.org_id AND c.call_id = i.call_id
		WHERE i.org_id = $1 AND i.key IN`
	return byKeys(ctx, q, text, org, keys, func(rows *sql.Rows) error {
		var f foundItem
		err := rows.Scan(&f.key, &f.id, &f.callID, &f.kind, &f.startMS, &f.endMS, &f.text, &f.phone, &f.at, &f.direction, &f.agentID,
			&f.agentName, &f.contactID, &f.recordingID, &f.tags, &f.summary)
		if err != nil {
			return err
		}
		each(f)
		return nil
	})
}

// pastCallRow is a call in a number's history.
type pastCallRow struct {
	callID, direction, status string
	at                        db.Time
	talkSeconds               int
	agentID, agentName        db.Null
	recordingID, sentiment    db.Null
	summary, outcome          string
	topics                    db.JSON[[]string]
	items                     db.JSON[[]Item]
}

// callsOf reads the newest calls of a number.
func callsOf(ctx context.Context, q db.Querier, v visibility.View, org, phone string, since db.Time, limit int) ([]pastCallRow, error) {
	const text = `SELECT call_id, at, direction, status, talk_seconds, agent_id, agent_name, recording_id, sentiment, summary,
			outcome, topics, action_items
		FROM memory_calls WHERE org_id = $1 AND phone IN ($2, $4) AND at >= $3`
	given, other := number.Spellings(phone)
	f := v.Narrow(db.Where(text, org, given, since, other), "call_id")
	last := f.Arg(limit)
	statement, args := f.SQL()
	rows, err := q.Query(ctx, statement+" ORDER BY at DESC LIMIT "+last, args...)
	if err != nil {
		return nil, err
	}
	var out []pastCallRow
	err = scanAll(rows, func(rows *sql.Rows) error {
		var p pastCallRow
		err := rows.Scan(&p.callID, &p.at, &p.direction, &p.status, &p.talkSeconds, &p.agentID, &p.agentName, &p.recordingID,
			&p.sentiment, &p.summary, &p.outcome, &p.topics, &p.items)
		out = append(out, p)
		return err
	})
	return out, err
}

// spanOf counts the calls of a number and returns the times of the first and the last.
func spanOf(ctx context.Context, q db.Querier, v visibility.View, org, phone string, since db.Time) (n int, first, last db.Time,
	err error) {
	const text = `SELECT COUNT(*), MIN(at), MAX(at) FROM memory_calls WHERE org_id = $1 AND phone IN ($2, $4) AND at >= $3`
	given, other := number.Spellings(phone)
	statement, args := v.Narrow(db.Where(text, org, given, since, other), "call_id").SQL()
	err = q.QueryRow(ctx, statement, args...).Scan(&n, &first, &last)
	return n, first, last, err
}

// orgsBySize returns the organisations, those with the most recent passages first.
func orgsBySize(ctx context.Context, q db.Querier, since db.Time) ([]string, error) {
	// tenant: the indexes of all organisations are made ready at start
	const text = `SELECT org_id FROM memory_vectors WHERE at >= $1 GROUP BY org_id ORDER BY COUNT(*) DESC`
	rows, err := q.Query(ctx, text, since)
	if err != nil {
		return nil, err
	}
	var out []string
	err = scanAll(rows, func(rows *sql.Rows) error {
		var org string
		err := rows.Scan(&org)
		out = append(out, org)
		return err
	})
	return out, err
}

// DeleteBefore deletes at most 500 calls of an organisation that began before a time and returns how many. Call it
// until it returns 0.
func (s *Service) DeleteBefore(ctx context.Context, org string, before time.Time) (int64, error) {
	const text = `DELETE FROM memory_calls WHERE org_id = $1 AND call_id IN
		(SELECT call_id FROM memory_calls WHERE org_id = $1 AND at < $2 LIMIT 500)`
	var n int64
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		done, err := tx.Exec(ctx, text, org, db.At(before))
		if err != nil {
			return err
		}
		n, err = done.RowsAffected()
		return err
	})
	return n, err
}

func eachRow(rows *sql.Rows, each func(row) error) error {
	return scanAll(rows, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		return each(r)
	})
}

func scanRow(rows *sql.Rows) (row, error) {
	var r row
	var agent, queue db.Null
	var vector, terms sql.RawBytes
	err := rows.Scan(&r.key, &r.phone, &r.at, &r.kind, &r.direction, &agent, &queue, &r.model, &vector, &terms)
	if err != nil {
		return r, err
	}
	r.agent, r.queue, r.terms = string(agent), string(queue), decodeTerms(terms)
	r.vector, err = vectorOf(vector)
	return r, err
}

func scanAll(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
