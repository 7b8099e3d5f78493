package device

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Binding is one registered contact of a device, with the connection to reach it (RFC 3261 §10).
type Binding struct {
	DeviceID   string
	Contact    string         // URI as the phone sent it
	Source     netip.AddrPort // source address of its REGISTER
	Transport  string
	Flow       uint64 // id of the connection; 0 for UDP
	Node       string // node that received its REGISTER; "": unknown, from before nodes were stored
	Path       []string
	Instance   string
	CallID     string
	CSeq       uint32
	Priority   int // q × 1000
	UserAgent  string
	Expires    time.Time
	Registered time.Time
	SRTP       string // SRTP of the device: off, preferred or required; set by BindingsOfUser only
	Username   string // SIP user name of the device; set by BindingsOfUser only
}

// Save replaces the bindings of a device; an empty list ends its registration. It returns db.ErrNone if the device
// does not exist.
func (s *Service) Save(ctx context.Context, deviceID string, all []Binding) error {
	return s.replaceBindings(ctx, deviceID, all, clearLost)
}

// Lose replaces the bindings of a device as Save does. If none are left and the device is a browser, it records that the browser became
// unreachable at a time, and did not sign off. Save ends that.
func (s *Service) Lose(ctx context.Context, deviceID string, left []Binding, at time.Time) error {
	if len(left) > 0 {
		return s.Save(ctx, deviceID, left)
	}
	return s.replaceBindings(ctx, deviceID, nil, func(ctx context.Context, tx db.Querier, org, id string) error {
		return setLost(ctx, tx, org, id, db.At(at))
	})
}

// replaceBindings replaces the bindings of a device, and stores whether its browser became unreachable.
func (s *Service) replaceBindings(ctx context.Context, deviceID string, all []Binding,
	storeLost func(ctx context.Context, tx db.Querier, org, id string) error) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		org, err := orgOf(ctx, tx, deviceID)
		if err != nil {
			return fmt.Errorf("find device %s: %w", deviceID, err)
		}
		if err := s.publishRegistrationChange(ctx, tx, org, deviceID, all); err != nil {
			return err
		}
		if err := deleteBindings(ctx, tx, org, deviceID); err != nil {
			return fmt.Errorf("replace registration: %w", err)
		}
		for i, b := range all {
			b.DeviceID = deviceID
			if err := insertBinding(ctx, tx, org, i, b); err != nil {
				return fmt.Errorf("save registration: %w", err)
			}
		}
		if err := storeLost(ctx, tx, org, deviceID); err != nil {
			return fmt.Errorf("store whether the browser is reachable: %w", err)
		}
		if len(all) == 0 {
			return nil
		}
		if err := s.users.PhoneRegistered(ctx, tx, org, deviceID); err != nil {
			return err
		}
		return setLastSeen(ctx, tx, org, deviceID, db.At(s.now()))
	})
}

// Load returns every binding of a device, including expired ones.
func (s *Service) Load(ctx context.Context, deviceID string) ([]Binding, error) {
	org, err := orgOf(ctx, s.db.Read(ctx), deviceID)
	if db.IsNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := bindings(ctx, s.db.Read(ctx), org, []string{deviceID}, db.Time{})
	return found[deviceID], err
}

// Bindings returns the current bindings of devices, the highest q-value of each device first (RFC 3261 §16.6).
func (s *Service) Bindings(ctx context.Context, org string, devices []string) ([]Binding, error) {
	if len(devices) == 0 {
		return nil, nil
	}
	found, err := bindings(ctx, s.db.Read(ctx), org, devices, db.At(s.now()))
	if err != nil {
		return nil, fmt.Errorf("find bindings: %w", err)
	}
	var all []Binding
	for _, id := range devices {
		all = append(all, found[id]...)
	}
	return all, nil
}

// BindingsOfUser returns the current bindings of a user's active phones. It reads the database at most once, and not
// at all if the result is cached.
func (s *Service) BindingsOfUser(ctx context.Context, org, userID string) ([]Binding, error) {
	now, found := s.now(), s.bindingCache
	if db.InTx(ctx) { // the transaction may see uncommitted rows, which must not be cached
		found = &bindingCache{}
	}
	all, err := found.get(userKey{org, userID}, now, func() ([]Binding, error) {
		return bindingsOfUser(ctx, s.db.Read(ctx), org, userID, db.At(now))
	})
	if err != nil {
		return nil, fmt.Errorf("find bindings of user: %w", err)
	}
	return all, nil
}

// AllBindings returns the current bindings of all devices.
func (s *Service) AllBindings(ctx context.Context) ([]Binding, error) {
	// tenant: signalling sends NAT keepalives to the phones of all organisations
	const text = `SELECT ` + bindingColumns + ` FROM registrations r WHERE r.expires_at > $1
		ORDER BY r.priority DESC, r.registered_at DESC, r.id`
	all, err := readBindings(ctx, s.db.Read(ctx), text, []any{db.At(s.now())}, nil)
	if err != nil {
		return nil, fmt.Errorf("find registrations: %w", err)
	}
	return all, nil
}

// RegisteredUsernames returns the SIP user names of the registered phones of all organisations.
func (s *Service) RegisteredUsernames(ctx context.Context) ([]string, error) {
	// tenant: emergency calls of the phones of all organisations are prepared
	const text = `SELECT DISTINCT d.username FROM devices d JOIN registrations r ON r.org_id = d.org_id AND r.device_id = d.id
		WHERE r.expires_at > $1 AND d.status = 'active'`
	return db.Strings(ctx, s.db.Read(ctx), "find registered phones", text, db.At(s.now()))
}

// lostWithNode is the condition of a registration that is of no use without the connections of its node: no proxy in front
// reaches the phone another way.
const lostWithNode = `flow <> 0 AND path IN ('null', '[]')`

// DropFlows ends registrations that came over connections of an earlier run of this node, or of a node that does not serve.
func (s *Service) DropFlows(ctx context.Context, node string) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		// tenant: the connections of all organisations ended with the process
		const q = `DELETE FROM registrations WHERE ` + lostWithNode + ` AND (node = $1
			OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = registrations.node AND n.state = 'serving')) RETURNING org_id, device_id`
		phones, err := deviceRefs(ctx, tx, q, node)
		if err != nil {
			return err
		}
		for p := range phones {
			if err := setLost(ctx, tx, p.org, p.id, db.At(s.now())); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropBefore deletes the registrations from before a moment, without events: in a copied database they are those of phones that are
// registered at the original.
func (s *Service) DropBefore(ctx context.Context, at time.Time) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		// tenant: the phones of all organisations are registered at the original
		_, err := tx.Exec(ctx, `DELETE FROM registrations WHERE registered_at < $1`, db.At(at))
		return err
	})
}

// DropNode ends the registrations over connections of a node that has stopped, and publishes device.registration for phones
// that have no other. It uses the transaction in the context.
func (s *Service) DropNode(ctx context.Context, node string) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		// tenant: the connections of all organisations ended with the node
		const q = `DELETE FROM registrations WHERE ` + lostWithNode + ` AND node = $1 RETURNING org_id, device_id`
		phones, err := deviceRefs(ctx, tx, q, node)
		if err != nil {
			return fmt.Errorf("drop registrations of node %s: %w", node, err)
		}
		for p := range phones {
			if err := setLost(ctx, tx, p.org, p.id, db.At(s.now())); err != nil {
				return err
			}
			if err := s.publishIfUnregistered(ctx, tx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

// publishIfUnregistered publishes device.registration if a phone whose registration was dropped has no other.
func (s *Service) publishIfUnregistered(ctx context.Context, tx db.Querier, p deviceRef) error {
	left, err := countBindings(ctx, tx, p.org, p.id, db.At(s.now()))
	if err != nil || left > 0 {
		return err
	}
	return s.publishRegistration(ctx, tx, p.org, event.DeviceRegistration{DeviceID: p.id, Status: "unregistered"})
}

// deviceRefs returns the phones that a statement names, each once.
func deviceRefs(ctx context.Context, tx db.Querier, q string, args ...any) (map[deviceRef]bool, error) {
	rows, err := tx.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[deviceRef]bool{}
	for rows.Next() {
		var p deviceRef
		if err := rows.Scan(&p.org, &p.id); err != nil {
			return nil, err
		}
		all[p] = true
	}
	return all, rows.Err()
}

// Sweep deletes registrations that expired more than a day ago.
func (s *Service) Sweep(ctx context.Context) (gone int64, err error) {
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		// tenant: a sweep over all organisations
		const old = `DELETE FROM registrations WHERE expires_at < $1`
		gone = 0
		if err := db.Affected(ctx, tx, &gone, old, db.At(s.now().AddDate(0, 0, -1))); err != nil {
			return err
		}
		if err := deleteExpiredTokens(ctx, tx, &gone, db.At(s.now())); err != nil {
			return err
		}
		return deleteUnusedAddresses(ctx, tx, &gone, db.At(s.now()))
	})
	return gone, err
}
