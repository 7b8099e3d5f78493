// Package smpp implements SMPP 3.4 as client (ESME) and as server (SMSC). It handles messages, their parts and
// receipts, but neither users nor a database. Received messages are passed to functions of the caller and
// acknowledged when these return without an error.
//
// # Goroutines
//
// A bind has four goroutines: a reader, a writer, one that passes requests to the caller's functions in order of
// arrival, and one for enquire_link. A client has up to sixteen more while receipts are handled. Client.Run and
// Server.Serve return when all of their goroutines have ended. All methods may be called from any goroutine.
//
// Section numbers refer to "Short Message Peer to Peer Protocol Specification v3.4", issue 1.2.
package smpp
