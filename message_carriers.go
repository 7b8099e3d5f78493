package main

import (
	"time"

	"soniq/smsc"
)

// This file joins the carriers of messages with the room of messages and with those that know numbers.

// buildCarriers makes the room of carriers of messages.
func (h *house) buildCarriers() {
	h.smsc = smsc.New(smsc.Config{DB: h.db, Bus: h.bus, Orgs: h.orgs, Seal: h.seal, Guard: h.guard, Messages: h.messages, Log: h.log, Now: time.Now,
		BaseURL: h.config.BaseURL, Node: h.node, Number: h.ownNumber, Phone: h.e164})
}
