package sandbox

import "sync"

// SuspendedOrgs is the set of organisations in which no call may begin, because a reset is in progress. The zero value is empty and ready.
type SuspendedOrgs struct{ orgs sync.Map }

// Suspend adds an organisation until lift is called. ok is false if it is in the set already: then lift must not be called.
func (s *SuspendedOrgs) Suspend(org string) (lift func(), ok bool) {
	_, there := s.orgs.LoadOrStore(org, true)
	return func() { s.orgs.Delete(org) }, !there
}

// Suspended reports whether no call may begin in an organisation.
func (s *SuspendedOrgs) Suspended(org string) bool {
	_, ok := s.orgs.Load(org)
	return ok
}
