// Package smpp speaks SMPP 3.4 with SMS centres, as client (ESME) and as the centre itself (SMSC). It knows messages,
// their parts and their receipts, and neither users nor a database: what comes in is given to functions of the caller,
// and acknowledged when they have returned without an error.
//
// # Goroutines
//
// A bind has four: one reads, one writes, one gives what came in to the caller's functions in the order it came, one keeps
// the bind alive. A client has up to sixteen more while receipts are taken. Client.Run and Server.Serve return when all of theirs have ended. All methods may be called from any
// goroutine.
//
// Section numbers are those of "Short Message Peer to Peer Protocol Specification v3.4", issue 1.2.
package smpp
