package crm

import (
	"context"
	"errors"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
)

// An Adapter speaks with one connected system. What it can do beside is in the interfaces below; Can says which of them work
// with its settings. It is made anew when settings change, and is safe for concurrent use. Every call has a deadline.
type Adapter interface {
	Can() Capabilities
}

// A Finder asks the system who somebody is. Nobody is no error.
type Finder interface {
	Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error)
}

// A Directory is a list of people that is copied into the phone index now and then.
type Directory interface {
	// All gives every record of the system to take, and stops at its first error.
	All(ctx context.Context, take func(context.Context, contact.Record) error) error
	// Every is how often the list is to be read.
	Every() time.Duration
}

// A Follower is a Directory that can tell what has changed since it was last read.
type Follower interface {
	Directory
	// Follow tells what has changed since a mark, and returns the next one. Where it cannot tell, or mark is "", it tells whole
	// before it gives all there is.
	Follow(ctx context.Context, mark string, into Changes) (next string, err error)
}

// Changes take what a Follower tells.
type Changes struct {
	Whole func(ctx context.Context) error // what comes is everything: who is not in it is gone
	Put   func(ctx context.Context, r contact.Record) error
	Gone  func(ctx context.Context, id string) error
}

// A Keeper writes contacts to the system.
type Keeper interface {
	// Upsert writes a contact: a new one where externalID is "". key is the same for every attempt of one change.
	Upsert(ctx context.Context, key, externalID string, c contact.Contact) (Written, error)
}

// A Merger is a Keeper of records that others change too. base is what the record said when it was last written, as Written.Base told.
type Merger interface {
	Merge(ctx context.Context, key, externalID, base string, c contact.Contact) (Written, error)
}

// A Noter writes notes to the system.
type Noter interface {
	// NeedsRecord reports whether notes can only be written to a record of the system.
	NeedsRecord() bool
	Note(ctx context.Context, key string, n Note) (Written, error)
}

// A CallLogger writes finished calls to the system.
type CallLogger interface {
	LogNeedsRecord() bool
	// LogCall writes a call. It is called again when more is known of it, such as its summary and its words: RecordID then says
	// what the system called the record, which is changed in place.
	LogCall(ctx context.Context, key string, c CallLog) (Written, error)
}

// A Once is a CallLogger that may be unable to change what it wrote: then a call is written once, when its summary has had its
// time.
type Once interface{ LogsOnce() bool }

// Written is what the system made of what it was given.
type Written struct {
	ExternalID, URL string
	Base            string // of a Merger: what the record says now
	Conflict        string // what was changed on both sides, and left as it is there
}

// Whom is the person a note or a call is about, as far as is known.
type Whom struct {
	ExternalID string // of the system's record
	ContactID  string
	Name       string
	Company    string
	Phone      string // E.164
	Email      string
	Again      bool // it may have been written before, by an attempt whose end was lost
}

// A Note is what somebody wrote about a person.
type Note struct {
	Whom
	ID, Text, Author string
	CallID           string
	At               db.Time
}

// A CallLog is a finished call with a person.
type CallLog struct {
	Whom
	RecordID                    string // what the system called the call when it was written before; "" the first time
	ID, Direction, Status       string
	From, To                    string
	StartedAt, EndedAt          db.Time
	Duration, Talk              int // seconds
	Summary, Agent, Disposition string
	RecordingURL                string
	Transcript                  string // who said what, a line for each turn; "" where there is none yet
}

// Errors of adapters. Others are tried again.
var (
	// ErrAuth says that the system does not accept our credentials.
	ErrAuth = errors.New("the system refuses the credentials")
	// ErrRefused says that the system does not take what it was given, now or later.
	ErrRefused = errors.New("the system refuses what it was given")
)

// Busy says that the system wants to be left alone for a while.
type Busy struct{ After time.Duration }

func (b *Busy) Error() string { return "the system is asked too often" }
