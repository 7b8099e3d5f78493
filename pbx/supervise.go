package pbx

import "context"

// reachUser finds the phones of a user, or one of them.
func (s *Switch) reachUser(ctx context.Context, org, user, device string) (reach, *Refusal, error) {
	d, ok, err := s.Directory.User(ctx, org, user)
	if err != nil || !ok {
		return reach{}, &Refusal{Status: 404, Phrase: "There is no such user", Reason: "invalid_number"}, err
	}
	return s.phonesOf(ctx, d, device)
}

// orgNow is the organisation of the call; it is known once the call is routed.
func (c *liveCall) orgNow() string {
	if p := c.org.Load(); p != nil {
		return *p
	}
	return ""
}

// belong says whose call it is.
func (c *liveCall) belong() {
	org := c.new.Org
	c.org.Store(&org)
}
