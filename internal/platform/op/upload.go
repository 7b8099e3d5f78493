package op

import (
	"fmt"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Upload marks an operation that reads its body itself (RawBody in its input), and limits the body in bytes.
func (o Operation) Upload(most int64) Operation { o.maxBodyBytes = most; return o }

// Takes declares a media type of an Upload's body by a value of its type. []byte members are files.
func (o Operation) Takes(mediaType string, body any) Operation {
	o.takes = append(slices.Clip(o.takes), alternative{mediaType: mediaType, body: reflect.TypeOf(body)})
	return o
}

// bodyLimit returns the maximum body size in bytes.
func (o Operation) bodyLimit() int64 {
	if o.maxBodyBytes > 0 {
		return o.maxBodyBytes
	}
	return maxBody
}

// checkLength refuses a body that is announced as too large, before it is read. The library ends a body without a length at the limit.
func checkLength(r *http.Request, o Operation) *Error {
	if limit := o.bodyLimit(); r.ContentLength > limit {
		return Fail("payload_too_large", fmt.Sprintf("the body has %d bytes, more than the limit of %d", r.ContentLength, limit))
	}
	return nil
}

// describeUploads adds the bodies of Uploads to the description. The library only knows bytes.
func describeUploads(doc *huma.OpenAPI, operations []Operation) {
	for _, o := range operations {
		if len(o.takes) == 0 {
			continue
		}
		body := doc.Paths[Prefix+o.Path].Post.RequestBody
		body.Content = map[string]*huma.MediaType{}
		for _, t := range o.takes {
			s := doc.Components.Schemas.Schema(t.body, true, "")
			if t.mediaType == "multipart/form-data" {
				filesAsTheyAre(doc.Components.Schemas.SchemaFromRef(s.Ref))
			}
			body.Content[t.mediaType] = &huma.MediaType{Schema: s}
		}
	}
}

// filesAsTheyAre marks the files of a form as binary. The library assumes base64.
func filesAsTheyAre(form *huma.Schema) {
	for _, p := range form.Properties {
		if p.ContentEncoding == "base64" {
			p.ContentEncoding, p.Format = "", "binary"
		}
	}
}

// CheckPart refuses a part of a form whose names cannot be stored. A part that is not the file must be a text in UTF-8.
func CheckPart(part *multipart.Part, body []byte, isFile bool) error {
	name := part.FormName()
	if err := undecodable("body", name); err != nil {
		return err
	}
	if isFile {
		return undecodable(strings.TrimPrefix(name+".filename", "."), part.FileName())
	}
	if err := checkCharset(part.Header.Get("Content-Type")); err != nil {
		return err
	}
	return undecodable(name, string(body))
}
