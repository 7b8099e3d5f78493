package server

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/customer/erasure"
	"soniq/internal/identity/partner"
	"soniq/internal/identity/user"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/messaging/smppserver"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/callback"
	"soniq/internal/telephony/call/cdr"
)

// The queues of background jobs, their workers and their handlers. Webhook deliveries have runners of their own in package webhook.

// jobQueue describes a queue of background jobs.
type jobQueue struct {
	name    string
	options job.Options
	handle  []func(*job.Runner) // each registers handlers
	// keepOnReset is true if jobs continue while a sandbox is reset: mails on their way to people, and the erasure of closed organisations.
	keepOnReset bool
}

// backgroundPace is the delay between jobs in queues without a latency requirement.
const backgroundPace = 5 * time.Millisecond

// jobQueues returns all queues of this node.
func (s *Server) jobQueues() []jobQueue {
	p := s.Platform
	all := []jobQueue{
		{name: call.JobQueue, options: job.Options{Workers: 8, PerLane: 4, Timeout: 10 * time.Minute, Pace: backgroundPace},
			handle: []func(*job.Runner){p.calls.Handle, p.recordings.Handle, p.numbers.Handle}},
		{name: cdr.JobQueue, options: job.Options{Workers: 2, PerLane: 1, Timeout: 2 * time.Hour},
			handle: []func(*job.Runner){p.cdrs.Handle}},
		{name: transcript.Queue, options: job.Options{Workers: 4, PerLane: 2, Timeout: 30 * time.Minute, Pace: backgroundPace},
			handle: []func(*job.Runner){p.transcripts.RegisterJobs}},
		{name: erasure.Queue, options: job.Options{Workers: 1, PerLane: 1, Timeout: time.Hour},
			handle: []func(*job.Runner){p.erasures.RegisterJobs}},
		{name: erasure.ExportQueue, options: job.Options{Workers: 1, PerLane: 1, Timeout: 2 * time.Hour},
			handle: []func(*job.Runner){p.erasures.RegisterExportJobs}},
		{name: contact.Queue, options: contact.Options(), handle: []func(*job.Runner){p.contacts.RegisterJobs}},
		{name: crm.Queue, options: crm.Options(), handle: []func(*job.Runner){p.crm.RegisterJobs}},
		{name: callback.JobQueue, options: job.Options{Workers: 4, PerLane: 2, Timeout: time.Minute},
			handle: []func(*job.Runner){p.callbacks.Handle}},
		{name: partner.Queue, options: job.Options{Workers: 1, Timeout: time.Hour}, handle: []func(*job.Runner){p.partners.Handle},
			keepOnReset: true},
		{name: smppserver.Queue, options: job.Options{Workers: 16, PerLane: 8, Timeout: 2 * time.Minute},
			handle: []func(*job.Runner){p.smppApps.Handle}},
		{name: sms.Queue, options: job.Options{Workers: 256, Timeout: 2 * time.Minute, LaneLimit: p.smsCarriers.LaneLimit},
			handle: []func(*job.Runner){p.messages.Handle}},
	}
	if p.mailer != nil {
		all = append(all, jobQueue{name: user.MailQueue, options: job.Options{Workers: 2, PerLane: 1, Timeout: 2 * time.Minute},
			handle:      []func(*job.Runner){p.users.HandleMail, func(r *job.Runner) { r.Handle(messageMail, p.sendMessageMail) }},
			keepOnReset: true})
	}
	return all
}

// startJobs starts the runners of all queues, and the deliveries of webhooks. In a restored copy that is not confirmed all jobs wait.
func (s *Server) startJobs(ctx context.Context) error {
	p := s.Platform
	if p.copied.Held() != nil {
		return nil
	}
	for _, q := range s.jobQueues() {
		r := &job.Runner{DB: p.db, Queue: p.jobs, Name: q.name, Node: p.node, Log: p.log, Options: q.options}
		for _, register := range q.handle {
			register(r)
		}
		if err := r.Start(ctx); err != nil {
			return fmt.Errorf("jobs of the queue %s: %w", q.name, err)
		}
		s.closers.push("jobs "+q.name, r.Stop)
		if !q.keepOnReset {
			s.resettable = append(s.resettable, r)
		}
	}
	if err := p.webhooks.Start(ctx); err != nil {
		return err
	}
	s.closers.push("webhooks", p.webhooks.Stop)
	return nil
}
