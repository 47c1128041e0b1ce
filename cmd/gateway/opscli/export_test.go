package opscli

var Frame = frame
