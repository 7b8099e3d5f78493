package assistant

import "context"

// Realtime holds conversations in one piece.
type Realtime struct{}

func (r *Realtime) talk(context.Context, *Service, Caller, Setting) Result { return Result{} }
