"""Names of the data sets in the UEA (multivariate) and UCR (univariate) archive, listed without importing aeon."""

from __future__ import annotations

MULTIVARIATE: tuple[str, ...] = tuple(
    """
    ArticularyWordRecognition AtrialFibrillation BasicMotions CharacterTrajectories Cricket DuckDuckGeese ERing
    EigenWorms Epilepsy EthanolConcentration FaceDetection FingerMovements HandMovementDirection Handwriting
    Heartbeat InsectWingbeat JapaneseVowels LSST Libras MotorImagery NATOPS PEMS-SF PenDigits PhonemeSpectra
    RacketSports SelfRegulationSCP1 SelfRegulationSCP2 SpokenArabicDigits StandWalkJump UWaveGestureLibrary
    """.split()
)

UNIVARIATE: tuple[str, ...] = tuple(
    """
    ACSF1 Adiac AllGestureWiimoteX AllGestureWiimoteY AllGestureWiimoteZ ArrowHead BME Beef BeetleFly BirdChicken
    CBF Car Chinatown ChlorineConcentration CinCECGTorso Coffee Computers CricketX CricketY CricketZ Crop
    DiatomSizeReduction DistalPhalanxOutlineAgeGroup DistalPhalanxOutlineCorrect DistalPhalanxTW DodgerLoopDay
    DodgerLoopGame DodgerLoopWeekend ECG200 ECG5000 ECGFiveDays EOGHorizontalSignal EOGVerticalSignal Earthquakes
    ElectricDevices EthanolLevel FaceAll FaceFour FacesUCR FiftyWords Fish FordA FordB FreezerRegularTrain
    FreezerSmallTrain Fungi GestureMidAirD1 GestureMidAirD2 GestureMidAirD3 GesturePebbleZ1 GesturePebbleZ2
    GunPoint GunPointAgeSpan GunPointMaleVersusFemale GunPointOldVersusYoung Ham HandOutlines Haptics Herring
    HouseTwenty InlineSkate InsectEPGRegularTrain InsectEPGSmallTrain InsectWingbeatSound ItalyPowerDemand
    LargeKitchenAppliances Lightning2 Lightning7 Mallat Meat MedicalImages MelbournePedestrian
    MiddlePhalanxOutlineAgeGroup MiddlePhalanxOutlineCorrect MiddlePhalanxTW MixedShapesRegularTrain
    MixedShapesSmallTrain MoteStrain NonInvasiveFetalECGThorax1 NonInvasiveFetalECGThorax2 OSULeaf OliveOil PLAID
    PhalangesOutlinesCorrect Phoneme PickupGestureWiimoteZ PigAirwayPressure PigArtPressure PigCVP Plane PowerCons
    ProximalPhalanxOutlineAgeGroup ProximalPhalanxOutlineCorrect ProximalPhalanxTW RefrigerationDevices Rock
    ScreenType SemgHandGenderCh2 SemgHandMovementCh2 SemgHandSubjectCh2 ShakeGestureWiimoteZ ShapeletSim ShapesAll
    SmallKitchenAppliances SmoothSubspace SonyAIBORobotSurface1 SonyAIBORobotSurface2 StarLightCurves Strawberry
    SwedishLeaf Symbols SyntheticControl ToeSegmentation1 ToeSegmentation2 Trace TwoLeadECG TwoPatterns UMD
    UWaveGestureLibraryAll UWaveGestureLibraryX UWaveGestureLibraryY UWaveGestureLibraryZ Wafer Wine WordSynonyms
    Worms WormsTwoClass Yoga
    """.split()
)

UEA_NAMES: tuple[str, ...] = MULTIVARIATE + UNIVARIATE
