package server

import (
	"context"
	"time"

	"soniq/internal/platform/job"
)

// Stop refuses new calls, waits up to --drain for calls in progress, and closes all listeners, jobs and services. Further calls do nothing.
func (n *Server) Stop() {
	n.once.Do(func() {
		n.draining.Store(true)
		if n.sip != nil {
			n.sip.Drain()
		}
		ctx, cancel := context.WithTimeout(context.Background(), n.Platform.config.DrainTime)
		defer cancel()
		if n.switcher != nil {
			n.switcher.Drain(ctx)
		}
		n.settle()
		n.closeDoors()
		n.background.Wait()
		n.Platform.Close()
	})
}

// settleTime is how long the other side's answers to the last BYEs and CANCELs are waited for: a few repetitions.
const settleTime = 4 * time.Second

func (n *Server) settle() {
	if n.sip == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	n.sip.Settle(ctx)
}

// shutdownTime is how long requests and jobs under way are waited for.
const shutdownTime = 10 * time.Second

func (n *Server) closeDoors() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	n.Platform.streams.Close()
	n.closeTools()
	if n.server != nil {
		_ = n.server.Shutdown(ctx)
	} else {
		_ = n.listener.Close()
	}
	if n.server == nil && n.secure != nil {
		_ = n.secure.Close()
	}
	if n.messages != nil {
		n.messages.Stop(ctx)
	}
	n.smpp.close()
	if n.applications != nil {
		n.applications.Stop(ctx)
	}
	if n.hangUp != nil {
		n.hangUp()
		n.lines.Wait()
	}
	if n.messageWaiting != nil {
		n.messageWaiting.Close()
		n.busyLamps.Close()
	}
	if n.sip != nil {
		_ = n.sip.Close()
	}
	if n.parties != nil {
		n.parties.Close()
	}
	if n.media != nil {
		n.media.Close()
	}
	n.Platform.calls.Close()
	if n.callbacks != nil {
		n.callbacks.Stop(ctx)
	}
	for _, r := range []*job.Runner{n.erasing, n.mails, n.callJobs, n.exports, n.imports, n.connections} {
		if r != nil {
			r.Stop(ctx)
		}
	}
	if n.understand != nil {
		n.understand.Stop(ctx)
	}
	if n.leaving != nil {
		n.leaving.Stop(ctx)
	}
	n.Platform.hooks.Stop(ctx)
	n.cancel()
}
