// Package adapter has the clients for the systems that hold an organisation's contacts: vendors of CRM systems, address books, LDAP
// directories, CSV files and any system with an HTTP API. Package crm stores the connections and their tokens, and calls the adapters.
package adapter

import (
	"context"
	"errors"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
)

// Adapter is the client for one connected system. Its optional abilities are the interfaces below; Can reports which
// of them work with the settings of the connection. A new adapter is built when the settings change. It is safe for
// concurrent use. Every call has a deadline.
type Adapter interface {
	Can() Capabilities
}

// Searcher looks up the records of a phone number or an e-mail address in the system. No match is not an error.
type Searcher interface {
	Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error)
}

// Directory is an adapter whose records are copied into the phone index periodically.
type Directory interface {
	// All passes every record of the system to take. It stops at the first error.
	All(ctx context.Context, take func(context.Context, contact.Record) error) error
	// RefreshInterval returns the time between two reads of the list.
	RefreshInterval() time.Duration
}

// IncrementalSync is a Directory that can report the changes since the last read.
type IncrementalSync interface {
	Directory
	// SyncSince reports the changes since a sync token and returns the next token. If the system cannot report
	// changes, or mark is "", it calls BeginFull and then passes all records.
	SyncSince(ctx context.Context, mark string, into ChangeSink) (next string, err error)
}

// ChangeSink receives the changes that an IncrementalSync reports.
type ChangeSink interface {
	BeginFull(ctx context.Context) error // a full read follows: records that are not passed again are deleted
	Put(ctx context.Context, r contact.Record) error
	Remove(ctx context.Context, id string) error
}

// recordSink is a ChangeSink that receives the records of a full read.
type recordSink func(context.Context, contact.Record) error

func (recordSink) BeginFull(context.Context) error { return nil }

func (s recordSink) Put(ctx context.Context, r contact.Record) error { return s(ctx, r) }

func (recordSink) Remove(context.Context, string) error { return nil }

// Upserter writes contacts to the system.
type Upserter interface {
	// Upsert writes a contact. If externalID is "", it creates a record. key is the same for every attempt at one
	// change.
	Upsert(ctx context.Context, key, externalID string, c contact.Contact) (WriteResult, error)
}

// Merger is an Upserter for records that are also changed on the other side. base is the content of the record after
// our last write, as returned in WriteResult.Base.
type Merger interface {
	Merge(ctx context.Context, key, externalID, base string, c contact.Contact) (WriteResult, error)
}

// NoteWriter writes notes to the system.
type NoteWriter interface {
	// NeedsRecord reports whether a note must be attached to a record of the system.
	NeedsRecord() bool
	Note(ctx context.Context, key string, n Note) (WriteResult, error)
}

// CallLogger writes finished calls to the system.
type CallLogger interface {
	LogNeedsRecord() bool
	// LogCall writes a call. It is called again when more data exists, such as the summary and the transcript.
	// RecordID is then the system's id of the record, which is updated in place.
	LogCall(ctx context.Context, key string, c CallLog) (WriteResult, error)
}

// SingleWriteCallLogger is a CallLogger that may be unable to change a record. If LogsOnce returns true, a call is
// written once, after the time for its summary.
type SingleWriteCallLogger interface{ LogsOnce() bool }

// WriteResult is the record that the system created or changed.
type WriteResult struct {
	ExternalID, URL string
	Base            string // of a Merger: the content of the record after the write
	Conflict        string // fields that were changed on both sides; the system's values were kept
}

// Person is the person that a note or a call is about. Unknown fields are "".
type Person struct {
	ExternalID string // of the system's record
	ContactID  string
	Name       string
	Company    string
	Phone      string // E.164
	Email      string
	Again      bool // an earlier attempt may have written it: its result was lost
}

// Note is a note about a person.
type Note struct {
	Person
	ID, Text, Author string
	CallID           string
	At               db.Time
}

// CallLog is a finished call with a person. Its JSON is the input of digest, which is stored: renaming a field
// changes the digest of every call.
type CallLog struct {
	Person
	RecordID                    string // the system's id of the call from the first write; "" before it
	ID, Direction, Status       string
	From, To                    string
	StartedAt, EndedAt          db.Time
	Duration, Talk              int // seconds
	Summary, Agent, Disposition string
	RecordingURL                string
	Transcript                  string // one line per turn with its speaker; "" if there is none yet
}

// Errors of adapters. Writes that fail with another error are retried.
var (
	// ErrAuth means that the system does not accept our credentials.
	ErrAuth = errors.New("the system refuses the credentials")
	// ErrRefused means that the system rejects the data, now and on every retry.
	ErrRefused = errors.New("the system refuses what it was given")
)

// BusyError means that the system limits our rate: no request may be sent for the time After.
type BusyError struct{ After time.Duration }

// Error returns the text of the error without the pause.
func (b *BusyError) Error() string { return "the system is asked too often" }

// Capabilities are the abilities of a connected system.
type Capabilities struct {
	Lookup  bool `json:"lookup"`
	Create  bool `json:"create"`
	Update  bool `json:"update"`
	Notes   bool `json:"notes"`
	CallLog bool `json:"call_log"`
}
