package op

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Upload says that the operation reads its body by itself (a RawBody member of its input), and bounds it in bytes.
func (o Operation) Upload(most int64) Operation { o.mostBody = most; return o }

// Takes describes a media type of an Upload's body by a value of its type; []byte members are files.
func (o Operation) Takes(mediaType string, body any) Operation {
	o.takes = append(slices.Clip(o.takes), alternative{mediaType: mediaType, body: reflect.TypeOf(body)})
	return o
}

// bodyLimit is how many bytes a body may have.
func (o Operation) bodyLimit() int64 {
	if o.mostBody > 0 {
		return o.mostBody
	}
	return maxBody
}

// describeUploads puts what an Upload takes into the description, where the library knows bytes only.
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

// filesAsTheyAre says that the files of a form are sent as they are, which the library takes for base64.
func filesAsTheyAre(form *huma.Schema) {
	for _, p := range form.Properties {
		if p.ContentEncoding == "base64" {
			p.ContentEncoding, p.Format = "", "binary"
		}
	}
}
