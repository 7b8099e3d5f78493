package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// Content is a kind of content that can be deleted while the call that it belongs to remains. Fields of payloads declare it by the struct
// tag content.
type Content string

// Words are what people said, and what was derived from it: text, summary, topics, action items, mood.
const Words Content = "words"

// contentFields has the payload type of each kind, and its fields by their content. It is derived from the declarations of the payloads.
var contentFields = sync.OnceValue(func() map[Kind]declaredContent {
	all := map[Kind]declaredContent{}
	add := func(p Payload) {
		t := reflect.TypeOf(p)
		d := declaredContent{payload: t, fields: map[Content][]int{}}
		for i := range t.NumField() {
			if c := Content(t.Field(i).Tag.Get("content")); c != "" {
				d.fields[c] = append(d.fields[c], i)
			}
		}
		if len(d.fields) > 0 {
			all[p.Kind()] = d
		}
	}
	for _, p := range Payloads {
		add(p)
	}
	for _, p := range StreamPayloads {
		add(p)
	}
	return all
})

type declaredContent struct {
	payload reflect.Type
	fields  map[Content][]int // indexes of the fields
}

// Without returns the body of an event without a kind of content: null, an empty text or an empty list in its place. It reports whether the
// body changed. A body that has no such content is returned unchanged.
func Without(kind Kind, body string, c Content) (without string, changed bool, err error) {
	d, known := contentFields()[kind]
	if !known || len(d.fields[c]) == 0 {
		return body, false, nil
	}
	data := reflect.New(d.payload)
	if err := json.Unmarshal([]byte(Event{Body: body}.Data()), data.Interface()); err != nil {
		return "", false, fmt.Errorf("read an event of the kind %s: %w", kind, err)
	}
	for _, i := range d.fields[c] {
		f := data.Elem().Field(i)
		changed = changed || !f.IsZero() && (f.Kind() != reflect.Slice || f.Len() > 0)
		f.SetZero()
	}
	if !changed {
		return body, false, nil
	}
	b, err := Encode(data.Elem().Interface().(Payload))
	return string(b), true, err
}
