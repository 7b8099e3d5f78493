package directory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// standby keeps in memory what the emergency calls of registered phones need, so that they leave while the database
// does not answer: log-ins, callers, callback numbers, locations and trunks.
type standby struct {
	d         *Directory
	downUntil atomic.Int64  // UnixNano; until then the database is not asked
	wake      chan struct{} // a phone is due

	mu      sync.Mutex               // guards the fields below
	phones  map[string]*standbyPhone // by SIP user name
	devices map[string]*standbyPhone // by device
	orgs    map[string]*standbyOrg
	due     map[string]bool // SIP user names to load
}

// standbyPhone is one phone. It does not change.
type standbyPhone struct {
	account   sip.Account
	caller    pbx.Caller
	emergency emergencyData
	loaded    time.Time
}

// emergencyData is what an emergency service is told about the caller; every field may be empty.
type emergencyData struct {
	callerID, numberID string
	address            *org.Civic
}

// standbyOrg is an organisation with phones. It does not change.
type standbyOrg struct {
	org    *org.Organization
	policy pbx.Policy
	routes []trunk.Route // to emergency services
}

const (
	standbyRefresh = 10 * time.Minute       // age from which a phone is loaded again
	standbyPoll    = 30 * time.Second       // interval of the check for old phones, and of loading organisations
	standbyPace    = 5 * time.Millisecond   // pause after a phone, so that many phones do not load the database
	standbyTimeout = 5 * time.Second        // for loading one phone or organisation
	standbyAfter   = 700 * time.Millisecond // wait for the database before the memory answers
	standbyDown    = 5 * time.Second        // time without questions after the database did not answer
	maxStandby     = 200_000                // phones
)

func newStandby(d *Directory) *standby {
	return &standby{d: d, wake: make(chan struct{}, 1), phones: map[string]*standbyPhone{},
		devices: map[string]*standbyPhone{}, orgs: map[string]*standbyOrg{},
		due: map[string]bool{}}
}

// StandbyPhones returns the number of phones whose emergency calls need no database.
func (d *Directory) StandbyPhones() int {
	d.standby.mu.Lock()
	defer d.standby.mu.Unlock()
	return len(d.standby.phones)
}

// seen has a phone loaded if it is unknown or old. It costs a map look-up.
func (s *standby) seen(username string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.phones[username]
	if p == nil && len(s.phones) < maxStandby || p != nil && s.d.cfg.Clock.Now().Sub(p.loaded) > standbyRefresh {
		s.addDue(username)
	}
}

func (s *standby) addDue(username string) {
	s.due[username] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run loads phones and organisations until the context ends.
func (s *standby) run(ctx context.Context) {
	changes := s.d.cfg.Bus.Subscribe(device.Changed, 256)
	defer changes.Close()
	trunks := s.d.cfg.Bus.Subscribe(trunk.Changed, 1)
	defer trunks.Close()
	others := [...]<-chan any{s.subscribe(ctx, user.Changed), s.subscribe(ctx, number.Changed)}
	tick := time.NewTicker(standbyPoll)
	defer tick.Stop()
	s.loadRegistered(ctx)
	for {
		select {
		case <-s.wake:
			s.loadDue(ctx)
		case m := <-changes.C:
			s.changed(m)
		case <-trunks.C:
			s.loadOrgs(ctx)
		case <-others[0]:
			s.expire()
		case <-others[1]:
			s.expire()
		case <-tick.C:
			s.loadOrgs(ctx)
			s.findOld()
		case <-ctx.Done():
			return
		}
	}
}

func (s *standby) subscribe(ctx context.Context, subject string) <-chan any {
	c := s.d.cfg.Bus.Subscribe(subject, 1)
	context.AfterFunc(ctx, c.Close)
	return c.C
}

// changed has a changed phone loaded again.
func (s *standby) changed(username any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := username.(string); ok && s.phones[name] != nil {
		s.addDue(name)
	}
}

// expire makes findOld load every phone again, because users or numbers have changed.
func (s *standby) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.phones {
		old := *p
		old.loaded = time.Time{}
		s.phones[name] = &old
	}
}

// findOld has old phones loaded, and those that could not be loaded.
func (s *standby) findOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.cfg.Clock.Now()
	for name, p := range s.phones {
		if now.Sub(p.loaded) > standbyRefresh {
			s.addDue(name)
		}
	}
	for name := range s.due {
		s.addDue(name)
	}
}

// loadRegistered has the phones loaded that registered before the process started.
func (s *standby) loadRegistered(ctx context.Context) {
	all, err := s.d.cfg.Devices.RegisteredUsernames(ctx)
	if err != nil {
		return // they are loaded when they register again
	}
	for _, name := range all {
		s.seen(name)
	}
}

// loadDue loads the phones that are due, as long as the database answers.
func (s *standby) loadDue(ctx context.Context) {
	for ctx.Err() == nil && !s.isDown() {
		name, ok := s.nextDue()
		if !ok || !s.load(ctx, name) {
			return
		}
		select {
		case <-time.After(standbyPace):
		case <-ctx.Done():
		}
	}
}

func (s *standby) nextDue() (username string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.due {
		return name, true
	}
	return "", false
}

// load loads one phone. A phone that does not exist any more is removed. If the database does not answer, the phone
// stays as it is and due, and load returns false.
func (s *standby) load(ctx context.Context, username string) bool {
	ctx, cancel := context.WithTimeout(ctx, standbyTimeout)
	defer cancel()
	p, err := s.d.standbyPhone(ctx, username)
	if err == nil && p != nil {
		err = s.loadOrg(ctx, p.caller.Org)
	}
	if err != nil && !db.IsNone(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.due, username)
	if old := s.phones[username]; old != nil {
		delete(s.devices, old.caller.DeviceID)
		delete(s.phones, username)
	}
	if p != nil && err == nil {
		s.phones[username], s.devices[p.caller.DeviceID] = p, p
	}
	return true
}

// standbyPhone reads a phone; nil if there is none.
func (d *Directory) standbyPhone(ctx context.Context, username string) (*standbyPhone, error) {
	account, ok, err := d.credentials(ctx, username)
	if err != nil || !ok {
		return nil, err
	}
	p := &standbyPhone{account: account, loaded: d.cfg.Clock.Now()}
	if p.caller, err = d.caller(ctx, username); err != nil {
		return nil, err
	}
	p.emergency, err = d.emergencyData(ctx, p.caller)
	return p, err
}

// loadOrgs loads the organisations that have phones.
func (s *standby) loadOrgs(ctx context.Context) {
	s.mu.Lock()
	ids := make([]string, 0, len(s.orgs))
	for id := range s.orgs {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		if s.isDown() || ctx.Err() != nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, standbyTimeout)
		if err := s.loadOrg(limited, id); db.IsNone(err) {
			s.mu.Lock()
			delete(s.orgs, id)
			s.mu.Unlock()
		}
		cancel()
	}
}

func (s *standby) loadOrg(ctx context.Context, id string) error {
	o, err := s.d.cfg.Orgs.GetShared(ctx, id)
	if err != nil {
		return err
	}
	routes, err := s.d.cfg.Trunks.EmergencyRoutes(ctx, id, "")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orgs[id] = &standbyOrg{org: o, policy: policyOf(o), routes: routes}
	return nil
}

func (s *standby) phone(username string) *standbyPhone {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phones[username]
}

func (s *standby) organisation(id string) *standbyOrg {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orgs[id]
}

// isDown reports whether the database did not answer a moment ago.
func (s *standby) isDown() bool {
	until := s.downUntil.Load()
	return until != 0 && s.d.cfg.Clock.Now().UnixNano() < until
}

func (s *standby) markDown() { s.downUntil.Store(s.d.cfg.Clock.Now().Add(standbyDown).UnixNano()) }

// orLastKnown asks the database through load. If it does not answer in time, it returns the value in memory, and asks
// again only after a while. known is false if the memory has no value.
func orLastKnown[T any](ctx context.Context, s *standby, last T, known bool, load func(ctx context.Context) (T, error)) (T, error) {
	if !known {
		return load(ctx)
	}
	if s.isDown() {
		return last, nil
	}
	limited, cancel := context.WithTimeout(ctx, standbyAfter)
	defer cancel()
	v, err := load(limited)
	if err == nil || db.IsNone(err) || ctx.Err() != nil {
		return v, err
	}
	s.markDown()
	return last, nil
}
