package job

import "context"

// Disown calls disown, as the loop does after the response to a claim was lost.
func (r *Runner) Disown(ctx context.Context) error { return r.disown(ctx) }
