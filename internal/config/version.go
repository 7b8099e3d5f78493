package config

// Version is set by the build.
var Version = "development"
