package op

import "strings"

// Values of generated examples.

const ulid = "01K9ZJ3T6QW5N8V2X4Y7B0CDEF"

// prefixes are the ID prefixes by kind.
var prefixes = map[string]string{
	"agent": "usr", "user": "usr", "supervisor": "usr", "author": "usr", "person": "usr", "member": "usr", "reassign_to": "usr",
	"call": "call", "active_call": "call", "origin_call": "call", "cdr": "cdr", "leg": "leg", "target_leg": "leg", "monitor": "mon",
	"note": "note", "tag": "tag", "recording": "rec", "transcript": "trn", "queue": "que", "entry": "qen", "device": "dev",
	"number": "num", "outbound_number": "num", "trunk": "trk", "flow": "flw", "audio": "aud", "webhook": "whk", "delivery": "dlv",
	"event": "evt", "key": "key", "credential": "key", "org": "org", "organization": "org", "partner": "org", "parent": "org",
	"home": "org", "callback": "cbk", "contact": "con", "voicemail": "vml", "mailbox": "vml", "message": "sms", "memory": "mem",
	"fact": "mem", "erasure": "era", "speaker": "usr", "offered_agent": "usr", "music_audio": "aud", "whisper_audio": "aud",
	"greeting_audio": "aud", "admin_user": "usr", "request": "req", "conversation": "cnv", "template": "tpl", "triggered": "evt",
}

// vocabulary has example texts by member name.
var vocabulary = map[string]any{
	"number": "+12025550143", "from_number": "+442079460018", "to_number": "+12025550143", "phone": "+442079460018",
	"from": "+12025550143", "to": "+442079460018", "email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace",
	"name": "Support", "from_name": "Ada Lovelace", "agent_name": "Ada Lovelace", "queue_name": "Support", "company": "Harbor Dental",
	"extension": "101", "country": "GB", "language": "en", "timezone": "Europe/London", "city": "London", "status": "completed",
	"direction": "inbound", "end_reason": "caller_hangup", "hangup_by": "caller", "sentiment": "positive", "disposition": "resolved",
	"ai_summary": "Ada asked for the invoice of January; it will be sent today.", "summary": "Ada asked for the invoice of January.",
	"text": "Could you send me the invoice of January?", "body": "Asked for the invoice of January.", "tag": "invoice",
	"topic": "invoice", "label": "Front desk", "description": "Calls about invoices", "title": "Not found", "detail": "no such call",
	"recording_url": "https://soniq.example/api/v1/recordings/rec_" + ulid + "/audio",
	"audio_url":     "https://soniq.example/api/v1/audio/aud_" + ulid + "/content",
	"url":           "https://example.com/hooks", "next_cursor": nil, "cursor": "eyJhZnRlciI6IjAxSzlaSjNUNlEifQ", "codec": "opus",
	"transport": "udp", "srtp": "off", "username": "u4k7w2", "password": "7Hk2-mVq9-Tz4x", "domain": "soniq.example",
	"host": "sip.carrier.example", "address": "192.0.2.10:5060", "local": "192.0.2.2:5060", "remote": "192.0.2.10:5060",
	"contact": "sip:u4k7w2@192.0.2.10:5060", "user_agent": "Yealink T54W 96.86", "vendor": "yealink", "model": "T54W",
	"mac": "00:15:65:ab:cd:ef", "firmware": "96.86.0.100", "key": "soniq_live_x7Bq2LmN4pR8sT1vW3yZ6aC9dE0fG5hJ",
	"key_hint": "…G5hJ", "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "secret_hint": "…b7oD", "event": "call.ended",
	"scope": "calls:read", "role": "agent", "kind": "call", "allowed_ip": "192.0.2.0/24", "last_used_ip": "192.0.2.7",
	"reason": "Returning a call", "code": "required", "field": "to", "message": "is required", "currency": "GBP", "plan": "business",
	"region": "England", "locality": "London", "content_type": "audio/wav", "format": "wav", "engine": "pocketsphinx",
	"client_reference": "ticket-4711", "external_reference": "customer-42", "reference": "4711", "skill": "billing",
	"sip_call_id": "f81d4fae-7dec-11d0@192.0.2.10", "sha256": strings.Repeat("9f", 32), "digest": strings.Repeat("4a", 16),
	"rollout": "live", "interval": "day", "date": "2026-01-31", "due": "2026-02-01", "user": "u4k7w2", "brand": "Harbor Dental",
	"response_body": "ok", "postcode": "10115", "street": "Invalidenstraße", "house_number": "43a", "announce_text": "One moment please.",
	"color": "#0a84ff", "query": "customer charged twice", "value": "Prefers to be called in the morning.", "source": "call",
	"admin_email": "ada@harbor.example", "bucket": "2026-01-31", "provider": "trunk", "mode": "listen", "voice": "slt", "version": "1.0",
	"header_prefix": "x-service", "webhook_header_prefix": "x-service", "file": "greeting.wav", "QueueCallback.key": "1",
	"AuthHome.status": "active", "Organization.status": "active", "from_domain": "soniq.example", "error": "timeout",
	"CallLeg.status": "ended",
	"User.status":    "active", "Webhook.status": "active", "UserPresence.status": "available", "Callback.status": "scheduled",
	"WebhookDelivery.status": "succeeded", "transferred_to": "ext:102",
}

// usuallyNull are members without a value in most records.
var usuallyNull = []string{"next_cursor", "missed_reason", "pause_reason", "disabled_reason", "revoked_at", "rotates_to", "last_error",
	"suspended_at", "suspend_reason", "closed_at", "erase_after", "held_since", "failure_reason", "error", "transferred_to",
	"missed_at", "released_at", "last_failure_at", "previous_valid_until", "replay_of", "next_attempt_at", "flow_id", "voicemail_id",
	"queue_entry", "wrap_up_until", "wrap_up_call_id", "active_call_id", "template_id", "exit_reason"}

var usuallyTrue = []string{"enabled", "signed_in", "registered", "sms_enabled", "has_recording", "emergency_capable", "ok", "acknowledged"}

// numbers are example numbers by member name.
var numbers = map[string]float64{
	"talk_duration_seconds": 42, "total_seconds": 48, "ring_seconds": 6, "hold_seconds": 0, "queue_seconds": 0, "duration_seconds": 42,
	"status": 404, "sip_status": 200, "q850_cause": 16, "port": 5060, "mos": 4.3, "mos_min": 4.1, "jitter_ms": 3.2, "rtt_ms": 24,
	"loss_rate": 0.001, "score": 0.87, "confidence": 0.93, "size_bytes": 672044, "sample_rate": 8000, "total": 128, "sequence": 8812,
	"max_channels": 30, "service_level": 0.94, "weight": 1, "priority": 10, "position": 1, "year": 2026, "ms": 120, "start": 1.2,
	"end": 3.4, "duration_ms": 42000, "start_ms": 1200, "end_ms": 3400, "attempt": 1, "attempts": 1, "max_attempts": 3, "http_status": 200,
	"response_status": 200, "pause_seconds": 0, "wait_seconds": 8, "average_wait_seconds": 8, "longest_wait_seconds": 21,
}

// tables are example request bodies in CSV.
var tables = map[string]string{
	"numbers.imports.create": "number,label,user\n+442079460100,Front desk,101\n+442079460101,,ada@example.com\n",
}

// texts are example responses other than JSON.
var texts = map[string]string{
	"text/csv": "id,direction,status,from_number,to_number,started_at\ncdr_" + ulid +
		",inbound,completed,+442079460018,+12025550143,2026-01-31T09:30:00Z\n",
	"application/jsonl": `{"id":"cdr_` + ulid + `","direction":"inbound","status":"completed","from_number":"+442079460018",` +
		`"to_number":"+12025550143","started_at":"2026-01-31T09:30:00Z"}` + "\n",
	"text/plain":           "Ada: Could you send me the invoice of January?\n",
	"text/vtt":             "WEBVTT\n\n00:00:01.200 --> 00:00:03.400\n<v Ada>Could you send me the invoice of January?\n",
	"application/x-subrip": "1\n00:00:01,200 --> 00:00:03,400\nAda: Could you send me the invoice of January?\n",
	"application/zip":      "PK\x03\x04…",
	"text/event-stream": "id: 8812\nevent: call.answered\ndata: {\"event\":\"call.answered\",\"data\":{\"call_id\":\"call_" + ulid +
		"\"}}\n\n",
}

// moment returns an example time for a member name: calls begin at 09:30 and last 48 seconds.
func moment(name string) string {
	switch name {
	case "answered_at":
		return "2026-01-31T09:30:06.000Z"
	case "ended_at", "exited_at", "finished_at", "completed_at", "available_at", "until":
		return "2026-01-31T09:30:48.000Z"
	case "expires_at", "retention_until", "url_expires_at", "scheduled_at", "window_end", "next_attempt_at", "until_at":
		return "2027-01-31T09:30:00.000Z"
	}
	return "2026-01-31T09:30:00.000Z"
}

// requestExamples are request bodies for operations whose required members alone are not a useful example.
var requestExamples = map[string]any{
	"calls.create": map[string]any{"to": "+442079460018", "from": "+12025550143", "record": "on",
		"metadata": map[string]any{"ticket": "4711"}},
	"calls.announce":        map[string]any{"text": "This call is recorded.", "to": "all"},
	"calls.tag":             map[string]any{"tags": []string{"invoice", "vip"}},
	"calls.disposition":     map[string]any{"code": "resolved"},
	"calls.note":            map[string]any{"body": "Asked for the invoice of January.", "pinned": true},
	"calls.transfer":        map[string]any{"to": "ext:102", "mode": "attended"},
	"calls.end":             map[string]any{"reason": "Done"},
	"calls.monitor.start":   map[string]any{"mode": "listen"},
	"calls.recording.pause": map[string]any{"reason": "payment", "auto_resume_seconds": 60},
	"callbacks.create":      map[string]any{"to": "+442079460018", "scheduled_at": "2027-01-31T09:30:00Z", "reason": "Offer"},
	"contacts.create": map[string]any{"first_name": "Ada", "last_name": "Lovelace", "company": "Harbor Dental",
		"phones": []map[string]any{{"number": "+442079460018", "label": "work"}}, "emails": []map[string]any{{"value": "ada@example.com"}}},
	"contacts.update":         map[string]any{"title": "Owner", "vip": true},
	"contacts.merge":          map[string]any{"from_id": "con_" + ulid},
	"contacts.imports.create": map[string]any{"content": "first_name,phone\nAda,+442079460018\n"},
	"crm.connections.create": map[string]any{"provider": "http", "name": "CRM", "settings": map[string]any{
		"note": map[string]any{"url": "https://example.com/hooks/notes", "body": map[string]any{"text": "{{note}}"}}}},
	"crm.connections.update": map[string]any{"priority": 10},
	"flows.create": map[string]any{"name": "Main menu", "publish": true, "ivr": map[string]any{"greeting": "For opening hours press one.",
		"options": map[string]any{"1": "hangup"}, "timeout_to": "hangup"}},
	"flows.validate": map[string]any{"name": "Main menu", "ivr": map[string]any{"greeting": "For opening hours press one.",
		"options": map[string]any{"1": "hangup"}, "timeout_to": "hangup"}},
	"flows.update":        map[string]any{"name": "Main menu of the holidays"},
	"agents.presence.set": map[string]any{"status": "away", "reason": "Lunch"}, "agents.queues.set": map[string]any{"signed_in": true},
	"apikeys.create": map[string]any{"name": "billing", "scopes": []string{"calls:read", "memory:read"}, "environment": "live"},
	"apikeys.rotate": map[string]any{"grace_seconds": 3600},
	"audio.create":   map[string]any{"text": "Welcome to Harbor Dental.", "name": "Welcome"},
	"devices.create": map[string]any{"user_id": "usr_" + ulid, "name": "Desk", "kind": "softphone"},
	"devices.update": map[string]any{"name": "Desk by the window"}, "me.preferences.set": map[string]any{"theme": "dark"},
	"memory.search": map[string]any{"query": "customer charged twice", "limit": 5}, "me.settings.update": map[string]any{"language": "de"},
	"numbers.create": map[string]any{"number": "+12025550143", "trunk_id": "trk_" + ulid, "user_id": "usr_" + ulid},
	"numbers.imports.create": map[string]any{"range": map[string]any{"from": "+442079460100", "to": "+442079460199"},
		"trunk_id": "trk_" + ulid},
	"numbers.providers.create": map[string]any{"provider": "telnyx", "api_key": "KEY0123456789ABCDEF", "trunk_id": "trk_" + ulid,
		"connection_id": "1293384261075731499"},
	"numbers.providers.update": map[string]any{"connection_id": "1293384261075731499"},
	"numbers.update":           map[string]any{"label": "Front desk"},
	"organization.update":      map[string]any{"name": "Harbor Dental", "timezone": "Europe/London"},
	"partners.create":          map[string]any{"name": "Harbor Dental", "plan": "business", "admin_email": "ada@harbor.example"},
	"partners.update":          map[string]any{"name": "Harbor Dental Group"},
	"partners.keys.create":     map[string]any{"name": "set-up", "scopes": []string{"users:admin", "numbers:write"}},
	"partners.suspend":         map[string]any{"reason": "Unpaid since December"},
	"partners.users.create":    map[string]any{"email": "ada@harbor.example", "first_name": "Ada", "last_name": "Lovelace"},
	"partners.users.update":    map[string]any{"role": "supervisor"},
	"queues.create":            map[string]any{"name": "Support", "extension": "600", "strategy": "longest_idle"},
	"queues.update":            map[string]any{"max_wait_seconds": 300},
	"queues.calls.update":      map[string]any{"position": 1},
	"queues.members.add":       map[string]any{"user_id": "usr_" + ulid, "signed_in": true},
	"queues.members.update":    map[string]any{"paused": true, "pause_reason": "Lunch"},
	"recordings.update":        map[string]any{"legal_hold": true},
	"sms.conversations.update": map[string]any{"read": true, "status": "closed"},
	"voicemail.update":         map[string]any{"status": "read"},
	"sandbox.events.trigger":   map[string]any{"event": "call.ended"},
	"tags.create":              map[string]any{"name": "invoice", "color": "#0a84ff"},
	"tags.update":              map[string]any{"color": "#34c759"},
	"transcripts.retry":        map[string]any{"language": "en"},
	"trunks.create":            map[string]any{"name": "Carrier", "host": "sip.carrier.example", "transport": "udp"},
	"trunks.route_test":        map[string]any{"to": "+442079460018"},
	"trunks.update":            map[string]any{"max_channels": 30},
	"users.create":             map[string]any{"email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace", "role": "agent"},
	"users.update":             map[string]any{"last_name": "King", "timezone": "Europe/London"},
	"users.dnd":                map[string]any{"enabled": true},
	"webhooks.create":          map[string]any{"url": "https://example.com/hooks", "events": []string{"call.ended", "call.transcription"}},
	"webhooks.update":          map[string]any{"events": []string{"*"}},
	"webhooks.replay":          map[string]any{"since": "2026-01-31T09:30:00Z", "only_failed": true},
	"webhooks.rotate_secret":   map[string]any{"grace_seconds": 86400},
	"webhooks.test":            map[string]any{"event": "call.ended"},
}
