package trunk_test

import (
	"context"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/trunk"
)

func TestEmergencyLocation_Precedence(t *testing.T) {
	t.Parallel()
	desk := &org.Civic{Country: "DE", City: "Berlin", Street: "Hof", HouseNumber: "1", Floor: "3"}
	office := &org.Civic{Country: "DE", City: "Berlin", Street: "Tor", HouseNumber: "2"}
	line, number := "Hof 1, Berlin", "Tor 2, Berlin"
	o := org.Organization{Country: "DE"}
	want := func(phone *org.Civic, number *string, text string) {
		t.Helper()
		place, ok := trunk.EmergencyLocation(o, phone, number)
		if ok != (text != "") || ok && place.String() != text {
			t.Errorf("%q, want %q", place, text)
		}
	}
	want(nil, nil, "")
	o.Emergency.DefaultAddress = &line
	want(nil, nil, "DE, Hof 1, Berlin")
	want(nil, &number, "DE, Tor 2, Berlin")
	o.Emergency.Location = office
	want(nil, &number, "Tor 2, Berlin, DE")
	want(desk, &number, "Hof 1, floor 3, Berlin, DE")
}

func TestPIDF_EscapesText(t *testing.T) {
	t.Parallel()
	place := org.Civic{Country: "US", Region: "NY", City: "New York", Street: `Bond <St> & "Co"`, HouseNumber: "5", Note: "]]>"}
	document := trunk.PIDF("+12125550100", place, time.Unix(0, 0))
	var read struct {
		Civic struct {
			City   string `xml:"A3"`
			Street string `xml:"RD"`
			Note   string `xml:"LOC"`
		} `xml:"tuple>status>geopriv>location-info>civicAddress"`
	}
	if err := xml.Unmarshal(document, &read); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	if read.Civic.City != place.City || read.Civic.Street != place.Street || read.Civic.Note != place.Note {
		t.Errorf("read %+v", read.Civic)
	}
}

func TestEmergencyLocation_Validation(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.request("PATCH", "/organization", `{"emergency":{"location":{"country":"Germany","city":"","street":"S","house_number":"1","floor":"`+
		strings.Repeat("9", 121)+`"}}}`).Want(422).
		Refused("validation_failed", "emergency.location.country invalid_country", "emergency.location.city required", "emergency.location invalid_length")
	h.request("PATCH", "/organization", `{"emergency":{"location":{"country":"DE","city":"Berlin","street":"Hof","house_number":"1","floor":"3"}}}`).Want(200)
	h.request("PATCH", "/organization", `{"emergency":{"location":{"country":"DE","city":"Bonn","street":"Tor","house_number":"2"}}}`).Want(200)
	a := h.request("GET", "/organization", nil).Want(200)
	if a.Text("emergency.location.city") != "Bonn" || a.Has("emergency.location", "floor") {
		t.Errorf("the new place kept something of the old one: %s", a.Bytes)
	}
}

func TestPublishEmergencyCall_OncePerCall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ctx := context.Background()
		box := &event.Outbox{DB: d, Bus: bus.New()}
		for range 2 { // the second time because the reply to the first was lost
			if err := h.PublishEmergencyCall(ctx, box, h.org, event.EmergencyCallPlaced{CallID: "call_1", Number: "112"}); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		var kind string
		err := d.Read(ctx).QueryRow(ctx, `SELECT COUNT(*), MAX(kind) FROM events WHERE org_id = $1`, h.org).Scan(&n, &kind)
		if err != nil || n != 1 || kind != "emergency.call_placed" {
			t.Errorf("%d events of kind %s, %v", n, kind, err)
		}
	})
}

func TestOrgsWithoutEmergencyCalls(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	without, err := h.OrgsWithoutEmergencyCalls(context.Background())
	if err != nil || len(without) != 1 || without[0].ID != h.org || !without[0].Acknowledged {
		t.Errorf("got %+v, %v", without, err)
	}
	h.createTrunk("able", `,"emergency_capable":true`)
	if without, err = h.OrgsWithoutEmergencyCalls(context.Background()); err != nil || len(without) != 0 {
		t.Errorf("with a trunk: %+v, %v", without, err)
	}
}
