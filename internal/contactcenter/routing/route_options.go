package routing

import (
	"context"
	"time"
)

// RouteOptions holds the options that a caller of a route handler sets, such as a step of a flow. A zero field sets
// nothing.
type RouteOptions struct {
	Priority         *int          // in a queue; nil: the queue's priority
	MaxWait          time.Duration // in a queue; 0: the queue's longest wait
	RingTimeout      time.Duration // how long phones ring; 0: the default of the destination
	Greeting         string        // audio id of the greeting of a mailbox; "": the mailbox's own
	MaxMessage       time.Duration // the longest voicemail; 0: the mailbox's limit
	ReturnUnanswered bool          // return an unanswered caller: follow neither a queue's overflow nor a user's voicemail
}

type routeOptionsKey struct{}

func withRouteOptions(ctx context.Context, w RouteOptions) context.Context {
	return context.WithValue(ctx, routeOptionsKey{}, w)
}

// RouteOptionsOf returns the options for the current route handler. They do not apply to a destination to which the
// handler routes the caller with RouteTo.
func RouteOptionsOf(ctx context.Context) RouteOptions {
	w, _ := ctx.Value(routeOptionsKey{}).(RouteOptions)
	return w
}
