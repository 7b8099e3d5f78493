package signin

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Guesses of passwords and codes are slowed down, and the person whose password is guessed still signs in. Failures are counted for an
// e-mail address from one source address, and for an e-mail address from a known device. Only the failures from unknown devices together
// count for the e-mail address alone. A known device is a browser in which the person signed in before; it has a signed cookie.

// Failed sign-ins before waiting begins, the first wait, and the longest. Each further failure doubles the wait.
const (
	failuresBeforeWait = 5   // from one source address or device
	failuresOfUnknown  = 100 // from all unknown devices together (NIST SP 800-63B §5.2.2)
	firstWait          = 30 * time.Second
	longestWait        = time.Hour
	failuresForgotten  = 24 * time.Hour
)

// attemptLimit limits the sign-in attempts from one source address or device, over all users.
var attemptLimit = access.Policy{Name: "logins", Quota: 60, Window: 10 * time.Minute}

// attempt is a sign-in that was counted as failed before it was checked, so that parallel guesses cannot pass the limit.
type attempt struct {
	email    string
	counters []counter
}

// counter counts the failures of an e-mail address: from a source address, from a device, or from all unknown devices.
type counter struct {
	key  string
	free int  // failures before waiting begins
	all  bool // it counts all unknown devices
}

// beginAttempt counts an attempt as failed. It refuses the attempt after too many failures.
func (s *Service) beginAttempt(r *http.Request, email string) (attempt, error) {
	ctx, device := r.Context(), s.device(r, email)
	source := op.ClientKey(op.ClientAddress(ctx))
	if s.cfg.Limiter != nil {
		key := source
		if device != "" {
			key = "device " + device
		}
		if _, ok := s.cfg.Limiter.Take(key, 1, attemptLimit); !ok {
			return attempt{}, &fault{http.StatusTooManyRequests, "There were too many attempts from your address. Wait ten minutes."}
		}
	}
	a := attempt{email: email, counters: []counter{{s.failureKey(email, "device "+device), failuresBeforeWait, false}}}
	if device == "" {
		a.counters = []counter{{s.failureKey(email, "address "+source), failuresBeforeWait, false},
			{s.failureKey(email, ""), failuresOfUnknown, true}}
	}
	return a, s.cfg.DB.Tx(ctx, func(tx db.Querier) error { return s.countFailures(ctx, tx, a) })
}

// failureKey returns the key of a counter in the database.
func (s *Service) failureKey(email, from string) string {
	key := "login " + strings.ToLower(email)
	if from != "" {
		key += " from " + from
	}
	return s.cfg.Seal.Digest(key)
}

// countFailures counts a failure in all counters of an attempt, or refuses the attempt.
func (s *Service) countFailures(ctx context.Context, tx db.Querier, a attempt) error {
	now := s.cfg.Clock.Now()
	for _, c := range a.counters {
		f, err := failuresOf(ctx, tx, c.key)
		if err != nil {
			return fmt.Errorf("read failures: %w", err)
		}
		if left := f.blockedUntil.Sub(now); !f.blockedUntil.IsZero() && left > 0 {
			return &fault{http.StatusTooManyRequests, fmt.Sprintf("There were too many wrong attempts. Try again in %d seconds.",
				int((left+time.Second-1)/time.Second))}
		}
		if now.Sub(f.at.Time) > failuresForgotten {
			f.count = 0
		}
		f.count, f.at = f.count+1, db.At(now)
		if f.count >= c.free {
			f.blockedUntil = db.At(now.Add(waitAfter(f.count - c.free)))
		}
		if err := setFailures(ctx, tx, c.key, f); err != nil {
			return fmt.Errorf("count failures: %w", err)
		}
	}
	return nil
}

// attemptSucceeded deletes the failures from the address or device, and takes the attempt out of those of all unknown devices.
func (s *Service) attemptSucceeded(ctx context.Context, tx db.Querier, a attempt) error {
	for _, c := range a.counters {
		if !c.all {
			if err := dropFailures(ctx, tx, c.key); err != nil {
				return fmt.Errorf("delete failures: %w", err)
			}
			continue
		}
		f, err := failuresOf(ctx, tx, c.key)
		if err != nil {
			return fmt.Errorf("read failures: %w", err)
		}
		f.count, f.blockedUntil = max(0, f.count-1), db.Time{}
		if err := setFailures(ctx, tx, c.key, f); err != nil {
			return fmt.Errorf("delete failures: %w", err)
		}
	}
	return nil
}

// waitAfter returns how long sign-in is blocked after the n-th failure that is not free: 30 s, 1 min, 2 min, … up to an hour.
func waitAfter(n int) time.Duration {
	return min(longestWait, firstWait<<min(max(0, n), 10))
}

// A device cookie has an entry for each of the last persons who signed in in the browser. It proves nothing but that: a password is needed
// as before.
const (
	deviceLife       = 365 * 24 * time.Hour
	devicesRemember  = 4
	deviceIDLength   = 20
	deviceSeparator  = "~"
	deviceFieldCount = 3
)

// device returns the id of the browser if the person with the e-mail address signed in in it before; else "".
func (s *Service) device(r *http.Request, email string) string {
	for _, entry := range strings.Split(s.cookie(r, "device"), deviceSeparator) {
		if id, ok := s.deviceID(entry, email); ok {
			return id
		}
	}
	return ""
}

// deviceID returns the id of an entry of a device cookie if the entry is for the e-mail address.
func (s *Service) deviceID(entry, email string) (id string, ok bool) {
	fields := strings.Split(entry, ".")
	if len(fields) != deviceFieldCount || len(fields[0]) != deviceIDLength {
		return "", false
	}
	until, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || s.cfg.Clock.Now().Unix() >= until {
		return "", false
	}
	want := s.deviceSignature(fields[0], fields[1], email)
	return fields[0], subtle.ConstantTimeCompare([]byte(want), []byte(fields[2])) == 1
}

func (s *Service) deviceSignature(id, until, email string) string {
	return s.cfg.Seal.Digest("device " + id + " " + until + " " + strings.ToLower(email))
}

// rememberDevice sets the device cookie after a sign-in.
func (s *Service) rememberDevice(w http.ResponseWriter, r *http.Request, email string) {
	id, until := seal.Random(deviceIDLength), strconv.FormatInt(s.cfg.Clock.Now().Add(deviceLife).Unix(), 10)
	all := []string{id + "." + until + "." + s.deviceSignature(id, until, email)}
	for _, entry := range strings.Split(s.cookie(r, "device"), deviceSeparator) {
		if _, same := s.deviceID(entry, email); entry != "" && !same && len(all) < devicesRemember && len(entry) < 200 {
			all = append(all, entry)
		}
	}
	s.setLongCookie(w, r, "device", strings.Join(all, deviceSeparator), deviceLife)
}
