package attendant

import "soniq/pbx"

// ownNumber is the number of the organisation that a caller dialled, to be shown when they are called back; "" where they dialled none.
func ownNumber(i pbx.Info) string {
	if i.NumberID == "" {
		return ""
	}
	return i.To
}
