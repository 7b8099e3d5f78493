package rest

import (
	"net/http"

	"soniq/internal/platform/op"
)

// noticePrefix is the path prefix for change notices of connected systems. The last segment is a secret.
const noticePrefix = "/notices/"

// notice accepts a change notice. Its body is ignored.
func (s *Server) notice(w http.ResponseWriter, r *http.Request) {
	known, err := s.cfg.Notices.Notice(r.Context(), r.PathValue("org"), r.PathValue("id"), r.PathValue("secret"))
	switch {
	case err != nil:
		s.cfg.Log.Warn("change notice of a connected system not accepted", "err", err)
		op.Write(w, r, op.Unavailable("overloaded", "the notice could not be written down", "5"))
	case !known:
		op.Write(w, r, op.Fail("not_found", "there is nothing at this address"))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}
